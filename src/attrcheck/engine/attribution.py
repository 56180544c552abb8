"""Run one method on one dataset x model, and hold it to its contract: how a map is checked."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attrcheck.contracts import Method, Pair
from attrcheck.errors import MethodError
from attrcheck.graph.guard import Snapshot
from attrcheck.store.entries import Entry
from attrcheck.store.seeds import derive
from attrcheck.tensors.draws import seeded


def attribute(method: Method, pair: Pair, seed: int) -> Entry:
    """Maps [N, H, W] of all images, with the seconds they took and how many are constant."""
    parts = []
    seconds = 0.0
    before = Snapshot.of(pair.network)
    for part in pair.slices():
        start = time.perf_counter()
        parts.append(attribute_batch(method, pair, part, seed))
        seconds += time.perf_counter() - start
    if change := before.change(pair.network):
        raise MethodError(f"{_where(method, pair)} {change}; work on a copy, or undo it")
    maps = np.concatenate(parts)
    constant = _constant(maps)
    if constant.any() and not method.constant:
        raise MethodError(
            f"{_where(method, pair)} returned a constant map for image "
            f"{_first(pair, constant)}: it ranks no pixel above another"
        )
    return Entry({"maps": maps}, {"seconds": seconds, "constant": int(constant.sum())})


@dataclass
class Reattribution:
    """The method on images that a protocol has changed; counts forward and backward passes."""

    method: Method
    pair: Pair
    seed: int
    absolute: bool = False
    passes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, dtype=np.int64))

    def of(self, part: slice) -> Callable[[Tensor], Tensor]:
        """Attribute other images in place of those of a batch, [N, C, H, W] -> [N, H, W]."""

        def attribute(images: Tensor) -> Tensor:
            self.passes += len(images) * np.array(self.method.passes)
            maps = attribute_batch(self.method, self.pair, part, self.seed, images)
            return torch.from_numpy(np.abs(maps) if self.absolute else maps).to(images.device)

        return attribute


def attribute_batch(
    method: Method, pair: Pair, part: slice, seed: int, instead: Tensor | None = None
) -> NDArray[np.float32]:
    """The checked maps of one batch, or of other images in its place.

    Global random numbers are seeded, and put back after.
    """
    given = pair.images[part] if instead is None else instead
    images, targets = given.clone(), pair.labels[part].clone()
    asked = inspect.signature(method.attribute).parameters
    offers = {"seeds": pair.seeds(part, seed, method.name), "dataset": pair.reference}
    optional = {name: value for name, value in offers.items() if name in asked}
    devices = [images.device] if images.device.type == "cuda" else []
    first = pair.dataset.ids[part][0]
    with seeded(derive(seed, pair.dataset.name, first, method.name, "global"), devices):
        try:
            maps = method.attribute(pair.network, images, targets, **optional)
        except Exception as error:
            raise MethodError(
                f"{_where(method, pair)} raised {type(error).__name__} in the batch that starts "
                f"with image {first!r}: {error}"
            ) from error
    for parameter in pair.network.parameters():
        parameter.grad = None  # a leftover that does no harm, but takes room
    if not torch.equal(images, given) or not torch.equal(targets, pair.labels[part]):
        raise MethodError(f"{_where(method, pair)} changed its input; work on a copy")
    return _checked(maps, method, pair, part)


def _checked(maps: object, method: Method, pair: Pair, part: slice) -> NDArray[np.float32]:
    images = pair.images[part]
    n, _, height, width = images.shape
    if not isinstance(maps, Tensor):
        raise MethodError(
            f"{_where(method, pair)} returned {type(maps).__name__}, not a torch.Tensor"
        )
    if tuple(maps.shape) == tuple(images.shape):
        maps = maps.sum(1)
    if tuple(maps.shape) != (n, height, width):
        raise MethodError(
            f"{_where(method, pair)} returned a tensor of shape {list(maps.shape)} for images "
            f"{list(images.shape)}; wanted {[n, height, width]}, or the shape of the images"
        )
    # A copy: the method may fill the same tensor again for the next batch.
    array = maps.detach().to("cpu", torch.float32, copy=True).numpy()
    bad = ~np.isfinite(array).all(axis=(1, 2))
    if bad.any():
        raise MethodError(
            f"{_where(method, pair)} returned values that are not finite for image "
            f"{_first(pair, bad, part.start)}"
        )
    return array


def _constant(maps: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray(maps.max(axis=(1, 2)) == maps.min(axis=(1, 2)))


def _first(pair: Pair, bad: NDArray[np.bool_], at: int = 0) -> str:
    return repr(pair.dataset.ids[at + int(bad.argmax())])


def _where(method: Method, pair: Pair) -> str:
    return f"method {method.name!r} on {pair.name}"
