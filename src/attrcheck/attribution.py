"""Run one method on one dataset x model, and hold it to its contract."""

from __future__ import annotations

import inspect
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attrcheck.errors import AttrcheckError
from attrcheck.guard import Snapshot
from attrcheck.loading import Setup
from attrcheck.methods import Method
from attrcheck.seeds import derive
from attrcheck.store import Entry


class MethodError(AttrcheckError):
    """A method that raised or broke its contract; the message names it and the first bad image."""


def attribute(method: Method, setup: Setup, seed: int) -> Entry:
    """Maps [N, H, W] of all images, with the seconds they took and how many are constant."""
    parts = []
    seconds = 0.0
    before = Snapshot.of(setup.network)
    for part in setup.slices():
        start = time.perf_counter()
        parts.append(attribute_batch(method, setup, part, seed))
        seconds += time.perf_counter() - start
    if change := before.change(setup.network):
        raise MethodError(f"{_where(method, setup)} {change}; work on a copy, or undo it")
    maps = np.concatenate(parts)
    constant = _constant(maps)
    if constant.any() and not method.constant:
        raise MethodError(
            f"{_where(method, setup)} returned a constant map for image "
            f"{_first(setup, constant)}: it ranks no pixel above another"
        )
    return Entry({"maps": maps}, {"seconds": seconds, "constant": int(constant.sum())})


@dataclass
class Retrial:
    """The method on images that a protocol has changed; counts forward and backward passes."""

    method: Method
    setup: Setup
    seed: int
    absolute: bool = False
    passes: NDArray[np.int64] = field(default_factory=lambda: np.zeros(2, dtype=np.int64))

    def on(self, part: slice) -> Callable[[Tensor], Tensor]:
        """Attribute other images in place of those of a batch, [N, C, H, W] -> [N, H, W]."""

        def attribute(images: Tensor) -> Tensor:
            self.passes += len(images) * np.array(self.method.passes)
            maps = attribute_batch(self.method, self.setup, part, self.seed, images)
            return torch.from_numpy(np.abs(maps) if self.absolute else maps).to(images.device)

        return attribute


def attribute_batch(
    method: Method, setup: Setup, part: slice, seed: int, instead: Tensor | None = None
) -> NDArray[np.float32]:
    """The checked maps of one batch, or of other images in its place.

    Global random numbers are seeded, and put back after.
    """
    given = setup.images[part] if instead is None else instead
    images, targets = given.clone(), setup.labels[part].clone()
    asked = inspect.signature(method.attribute).parameters
    offers = {"seeds": setup.seeds(part, seed, method.name), "dataset": setup.reference}
    optional = {name: value for name, value in offers.items() if name in asked}
    devices = [images.device] if images.device.type == "cuda" else []
    first = setup.dataset.ids[part][0]
    with seeded(derive(seed, setup.dataset.name, first, method.name, "global"), devices):
        try:
            maps = method.attribute(setup.network, images, targets, **optional)
        except Exception as error:
            raise MethodError(
                f"{_where(method, setup)} raised {type(error).__name__} in the batch that starts "
                f"with image {first!r}: {error}"
            ) from error
    for parameter in setup.network.parameters():
        parameter.grad = None  # a leftover that does no harm, but takes room
    if not torch.equal(images, given) or not torch.equal(targets, setup.labels[part]):
        raise MethodError(f"{_where(method, setup)} changed its input; work on a copy")
    return _checked(maps, method, setup, part)


@contextmanager
def seeded(seed: int, devices: list[torch.device]) -> Iterator[None]:
    """Seed the global generators of torch, numpy and Python, with gradients on; undo it after.

    And whatever else is done to torch's default type and number of threads.
    """
    states = np.random.get_state(), random.getstate()
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    try:
        with torch.random.fork_rng(devices), torch.enable_grad():
            torch.manual_seed(seed)
            np.random.seed(seed % 2**32)
            random.seed(seed)
            yield
    finally:
        np.random.set_state(states[0])
        random.setstate(states[1])
        torch.set_default_dtype(dtype)
        torch.set_num_threads(threads)


def _checked(maps: object, method: Method, setup: Setup, part: slice) -> NDArray[np.float32]:
    images = setup.images[part]
    n, _, height, width = images.shape
    if not isinstance(maps, Tensor):
        raise MethodError(
            f"{_where(method, setup)} returned {type(maps).__name__}, not a torch.Tensor"
        )
    if tuple(maps.shape) == tuple(images.shape):
        maps = maps.sum(1)
    if tuple(maps.shape) != (n, height, width):
        raise MethodError(
            f"{_where(method, setup)} returned a tensor of shape {list(maps.shape)} for images "
            f"{list(images.shape)}; wanted {[n, height, width]}, or the shape of the images"
        )
    # A copy: the method may fill the same tensor again for the next batch.
    array = maps.detach().to("cpu", torch.float32, copy=True).numpy()
    bad = ~np.isfinite(array).all(axis=(1, 2))
    if bad.any():
        raise MethodError(
            f"{_where(method, setup)} returned values that are not finite for image "
            f"{_first(setup, bad, part.start)}"
        )
    return array


def _constant(maps: NDArray[np.float32]) -> NDArray[np.bool_]:
    return np.asarray(maps.max(axis=(1, 2)) == maps.min(axis=(1, 2)))


def _first(setup: Setup, bad: NDArray[np.bool_], at: int = 0) -> str:
    return repr(setup.dataset.ids[at + int(bad.argmax())])


def _where(method: Method, setup: Setup) -> str:
    return f"method {method.name!r} on {setup.pair}"
