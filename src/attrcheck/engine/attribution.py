"""Run one method on one dataset x model, and hold it to its contract: how a map is checked.

A method is somebody else's code. What it changes for others is put back or is its error, and so is
whatever it raises or returns; see `isolation` for what is watched, and for processes of their own.
"""

from __future__ import annotations

import inspect
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Method, Pair
from attrcheck.engine import keys
from attrcheck.engine.settings import BLOCK
from attrcheck.errors import MethodError, cut, line_of, text_of
from attrcheck.graph.guard import Snapshot
from attrcheck.isolation.guard import EDITED, Guard
from attrcheck.isolation.patches import Patches
from attrcheck.methods import method as methods
from attrcheck.store.encoding import Entry
from attrcheck.store.seeds import derive
from attrcheck.tensors.batching import exhausted, halving
from attrcheck.tensors.draws import seeded
from attrcheck.tensors.transfers import sent, which_equal

REMEDIES = {
    "NoneType": "does it lack a `return`?",
    "ndarray": "return torch.from_numpy(maps)",
}
"""What to do about an answer that is of another type."""
KINDS: dict[str, Callable[[Tensor], bool]] = {
    "a nested tensor": lambda maps: maps.is_nested,
    "a sparse tensor": lambda maps: maps.layout is not torch.strided,
    "a quantized tensor": lambda maps: maps.is_quantized,
    "a tensor without values, on the device meta": lambda maps: maps.is_meta,
    "complex numbers": lambda maps: maps.is_complex(),
}
"""What is a torch.Tensor, and not one float per pixel."""

ALWAYS = Method.__dataclass_fields__["not_applicable"].default
"""Of methods that are applicable everywhere: nobody has to be asked."""
MOST_SIGNATURE = 200
LIBRARIES = (
    *(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")),
    str(Path(__file__).parent.parent),
)
"""Where no user writes."""


def attribute(
    method: Method, pair: Pair, seed: int, working: Callable[[], None] = lambda: None
) -> Entry:
    """Maps [N, H, W] of all images, with the seconds they took and how many are constant.

    `working` is called before each batch.
    """
    if pair.remote and (answer := pair.remote.attribute(method, pair, seed)) is not None:
        return Entry({"maps": answer[0]}, answer[1])
    parts: list[NDArray[np.float32]] = []
    seconds = 0.0

    def attributed(part: slice) -> NDArray[np.float32]:
        return attribute_batch(method, pair, part, seed)

    with unchanged(method, pair):
        for part in pair.slices():
            working()
            start = time.perf_counter()
            parts += halving(attributed, part, pair.given(method), pair.images, BLOCK)
            seconds += time.perf_counter() - start
    maps = np.concatenate(parts)
    constant = constant_maps(maps)
    if constant.any() and not method.constant:
        raise MethodError(
            f"{_where(method, pair)} returned a constant map for image "
            f"{_first(pair, constant)}: it ranks no pixel above another; if that may be, say why: "
            f'@attrcheck.method("{method.name}", constant="...")'
        )
    facts = {"seconds": seconds, "constant": int(constant.sum()), "images": len(maps)}
    return Entry({"maps": maps}, facts)


def not_applicable(method: Method, pair: Pair) -> str | None:
    """Why a method cannot be right on the pair's model; None where it can."""
    if method.not_applicable is ALWAYS:
        return None
    if pair.remote and (answer := pair.remote.not_applicable(method, pair)) is not None:
        return answer[0]
    guarded = _guarded(method, pair) if methods.is_own(method.name) else nullcontext()
    with guarded, _blamed(method, pair, "in `not_applicable`"):
        reason = method.not_applicable(pair.given(method))
        return None if reason is None else str(reason)


@contextmanager
def unchanged(method: Method, pair: Pair, *others: nn.Module) -> Iterator[None]:
    """An error of the method if its network, or what it sees of the dataset, is not as it was.

    Whole tensors are compared, so this is for all batches together. others: networks beside the
    one that it gets.
    """
    networks = (pair.given(method), *others)
    snapshots = [Snapshot.of(network) for network in networks]
    seen, patches = _seen(method, pair), Patches.now()
    try:
        yield
    finally:
        exchanged = patches.undo()
    changes = [
        *filter(None, map(Snapshot.change, snapshots, networks)),
        *([EDITED] if seen != _seen(method, pair) else []),
        *exchanged,
    ]
    if changes:
        pair.spoilt()
        change = changes[0]
        raise MethodError(f"{_where(method, pair)} {change}; work on a copy, or undo it")


def _seen(method: Method, pair: Pair) -> str:
    """The bytes of the dataset that a user's own method is handed: numpy's edits are not counted.

    Built-in methods do not edit it through numpy.
    """
    asks = "dataset" in _parameters(method)
    return keys.of_dataset(pair.reference) if asks and methods.is_own(method.name) else ""


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
            return sent(torch.from_numpy(np.abs(maps) if self.absolute else maps), images.device)

        return attribute


def attribute_batch(
    method: Method, pair: Pair, part: slice, seed: int, instead: Tensor | None = None
) -> NDArray[np.float32]:
    """The checked maps of one batch, or of other images in its place.

    Global random numbers are seeded, and put back after.
    """
    if pair.remote:
        answer = pair.remote.attribute_batch(method, pair, part, seed, instead)
        if answer is not None:
            return answer
    given = pair.images[part] if instead is None else instead
    network, images, targets = pair.given(method), given.clone(), pair.labels[part].clone()
    offers = {"seeds": pair.seeds(part, seed, method.name), "dataset": pair.reference}
    asked = _parameters(method)
    optional = {name: value for name, value in offers.items() if name in asked}
    _check_call(method, pair, optional)
    devices = [images.device] if images.device.type == "cuda" else []
    first = pair.dataset.ids[part][0]
    place = f"in the batch that starts with image {first!r}"
    with _guarded(method, pair):
        start = derive(seed, pair.dataset.name, first, method.name, "global")
        with _blamed(method, pair, place), seeded(start, devices):
            maps = method.attribute(network, images, targets, **optional)
    with _blamed(method, pair, f"{place}, when its maps were read"):
        checked = _checked(maps, method, pair, part)
    for parameter in network.parameters():
        parameter.grad = None  # a leftover that does no harm, but takes room
    if not all(which_equal([(images, given), (targets, pair.labels[part])])):
        raise MethodError(f"{_where(method, pair)} changed its input; work on a copy")
    return checked


@contextmanager
def _blamed(method: Method, pair: Pair, place: str) -> Iterator[None]:
    """Whatever is raised is an error of the method: also what ends a process, or skips a test."""
    try:
        yield
    except (MethodError, KeyboardInterrupt):  # a person may have pressed it
        raise
    except BaseException as error:
        line = _line(method, error)
        raise MethodError(
            f"{_where(method, pair)} raised {type(error).__name__} {place}: {text_of(error)}"
            f"{line and f' (at {line})'}"
        ) from error


def _line(method: Method, error: BaseException) -> str:
    """The deepest line that is a user's own, else of the file that the method is in."""
    function = method.attribute
    while isinstance(function, partial):
        function = function.func
    home = getattr(getattr(function, "__code__", None), "co_filename", "")
    return own_line(error) or line_of(error, lambda file: file == home)


def own_line(error: BaseException) -> str:
    """The deepest line of a traceback that a user wrote, or nothing."""
    return line_of(error, lambda file: not file.startswith(LIBRARIES))


@contextmanager
def _guarded(method: Method, pair: Pair) -> Iterator[None]:
    """Put back what the method changes in this process; its error, if others may have noticed."""
    # What ships with attrcheck is looked at when all of its batches are done.
    guard = Guard.of(pair.reference, code=methods.is_own(method.name))
    try:
        yield
    except BaseException as error:
        guard.restore(pair.reference)
        if not exhausted(error):  # then it is tried with fewer images
            pair.spoilt()
        raise
    if change := guard.restore(pair.reference):
        pair.spoilt()
        raise MethodError(f"{_where(method, pair)} {change}; work on a copy, or undo it")


def _parameters(method: Method) -> Any:
    """The names by which a method may be called."""
    try:
        return inspect.signature(method.attribute).parameters
    except (TypeError, ValueError):  # not to be told, as of some that are not written in Python
        return ()


def _check_call(method: Method, pair: Pair, optional: Mapping[str, Any]) -> None:
    """Raise MethodError unless the method can be called as methods are."""
    try:
        signature = inspect.signature(method.attribute)
    except (TypeError, ValueError):  # not to be told
        return
    try:
        signature.bind(None, None, None, **optional)
    except TypeError as error:
        raise MethodError(
            f"{_where(method, pair)} takes {cut(str(signature), MOST_SIGNATURE)}, but is called "
            "with (model, images, targets); give every other argument a default"
        ) from error


def _checked(maps: object, method: Method, pair: Pair, part: slice) -> NDArray[np.float32]:
    images = pair.images[part]
    n, _, height, width = images.shape
    if not isinstance(maps, Tensor):
        kind = type(maps).__name__
        raise MethodError(
            f"{_where(method, pair)} returned {kind}, not a torch.Tensor; "
            f"{REMEDIES.get(kind, 'return the maps alone')}"
        )
    with torch._C.DisableTorchFunctionSubclass():  # a subclass may have a mind of its own
        for kind, holds in KINDS.items():
            if holds(maps):
                raise MethodError(f"{_where(method, pair)} returned {kind}, not floats as they are")
        maps = maps.detach()
        if tuple(maps.shape) in (tuple(images.shape), (n, 1, height, width)):
            maps = maps.sum(1)
        if tuple(maps.shape) != (n, height, width):
            raise MethodError(
                f"{_where(method, pair)} returned a tensor of shape {list(maps.shape)} for images "
                f"{list(images.shape)}; wanted {[n, height, width]}, or the shape of the images"
                f"{_remedy(list(maps.shape), list(images.shape))}"
            )
        # A copy: the method may fill the same tensor again for the next batch.
        array: NDArray[np.float32] = maps.to("cpu", torch.float32, copy=True).numpy()
    bad = np.asarray(~np.isfinite(array).all(axis=(1, 2)))
    if bad.any():
        raise MethodError(
            f"{_where(method, pair)} returned values that are not finite for image "
            f"{_first(pair, bad, part.start)}; look for a division by zero, or a logarithm of it"
        )
    return array


def _remedy(shape: list[int], images: list[int]) -> str:
    """How maps get the shape that is wanted, where that can be guessed."""
    n, channels, height, width = images
    if shape == [n, height, width, channels]:
        return "; move the channels: maps.permute(0, 3, 1, 2)"
    if len(shape) in (3, 4) and shape[0] == n:
        return "; enlarge small maps with torch.nn.functional.interpolate"
    return ""


def constant_maps(maps: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of the maps [N, H, W] have one value everywhere."""
    return np.asarray(maps.max(axis=(1, 2)) == maps.min(axis=(1, 2)))


def _first(pair: Pair, bad: NDArray[np.bool_], at: int = 0) -> str:
    return repr(pair.dataset.ids[at + int(bad.argmax())])


def _where(method: Method, pair: Pair) -> str:
    return f"method {method.name!r} on {pair.name}"
