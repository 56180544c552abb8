"""How many samples go through a model at once: as many as is quick, and fit into the budget.

Methods that look at an image many times (steps, noisy copies, masks) take their inner batches from
here. The quick size is fixed per kind of device, so that results do not depend on what is free;
the budget only bites where a model is large.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

import torch
from torch import Tensor, nn

from attrcheck.tensors.memo import PerModel

QUICK_ELEMENTS = {"cpu": 64 * 3 * 32 * 32, "cuda": 64 * 3 * 224 * 224, "mps": 16 * 3 * 224 * 224}
"""Input elements of one batch: more gains nothing, and on a CPU falls out of the cache.

Fixed, because a float depends on the batch that it was computed in.
"""

ASSUMED = 2**32
"""Bytes taken to be free on a system that does not tell."""
EQUAL = 16
"""Images in a batch of those that must all be of one size."""
EXHAUSTED = ("out of memory", "can't allocate memory", "not enough memory")
"""What torch says of it where it raises a plain RuntimeError: on the CPU, and on Apple's GPUs."""

_BUDGET: ContextVar[tuple[int | None, int]] = ContextVar("attrcheck_budget", default=(None, 1))
_COSTS: PerModel[int] = PerModel()
_FITTING: PerModel[list[int]] = PerModel()
"""What batches were cut to, each time that memory ran out."""

T = TypeVar("T")


@contextmanager
def limited_to(budget: int | None, sharers: int = 1) -> Iterator[None]:
    """Within this block inner batches keep to so many bytes; None: to half of what is free.

    sharers: processes that take their part of what is free.
    """
    token = _BUDGET.set((budget, sharers))
    try:
        yield
    finally:
        _BUDGET.reset(token)


def free(device: torch.device) -> int:
    """Bytes on a device that nobody uses, what torch keeps for this process among them."""
    if device.type == "cuda":
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + kept
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError):
        return ASSUMED


def quick_size(images: Tensor) -> int:
    """How many images of this size make a batch on their device, if there is room."""
    elements = QUICK_ELEMENTS.get(images.device.type, QUICK_ELEMENTS["cuda"])
    return max(1, elements // images[0].numel())


def samples_at_once(model: nn.Module, images: Tensor) -> int:
    """How many samples of this size to pass through the model at once, forward and backward."""
    budget, sharers = _BUDGET.get()
    if budget is None:
        budget = free(images.device) // (2 * sharers)
    quick = min(quick_size(images), *_fitting(model, images))
    return max(1, min(quick, budget // bytes_per_sample(model, images)))


def bytes_per_sample(model: nn.Module, images: Tensor) -> int:
    """What one sample keeps for the backward pass, doubled for what comes and goes meanwhile."""
    return _COSTS.get(model, _kind(images), lambda: _measured(model, images))


def _fitting(model: nn.Module, images: Tensor) -> list[int]:
    """What batches of these were cut to; at first there is no bound."""
    return _FITTING.get(model, _kind(images), lambda: [sys.maxsize])


def _kind(images: Tensor) -> tuple[torch.Size, torch.dtype]:
    return images.shape[1:], images.dtype


def _measured(model: nn.Module, images: Tensor) -> int:
    # A linear layer keeps a view of its weight, so it is the storage that tells.
    owned = {_place(tensor) for tensor in (*model.parameters(), *model.buffers())}
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        if _place(tensor) not in owned:
            kept[_place(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        output: Tensor = model(torch.zeros_like(images[:1]).requires_grad_())
    return 2 * (sum(kept.values()) + output.nbytes)


def _place(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()


def in_batches(
    work: Callable[[slice], Tensor], samples: int, model: nn.Module, images: Tensor
) -> Iterator[Tensor]:
    """`work` on one slice of `samples` after another; halves the slices when memory runs out."""
    return halving(work, slice(0, samples), model, images, samples_at_once(model, images))


def halving(
    work: Callable[[slice], T], whole: slice, model: nn.Module, images: Tensor, size: int
) -> Iterator[T]:
    """`work` on a slice, `size` at a time; on half as many, now and later, when memory runs out.

    model, images: what later work must have in common with this to be cut like it.
    """
    start = whole.start
    while start < whole.stop:
        size = min(size, *_fitting(model, images))
        part = slice(start, min(start + size, whole.stop))
        try:
            result = work(part)
        except (RuntimeError, MemoryError) as error:
            tried = part.stop - part.start
            if tried == 1 or not exhausted(error):
                raise
            _fitting(model, images).append(tried // 2)
            continue
        yield result
        start = part.stop


def in_equal_batches(work: Callable[[Tensor], Tensor], model: nn.Module, images: Tensor) -> Tensor:
    """`work` on the rows of sixteen images after another, the last filled up with the last image.

    Of one size, because a float depends on the size of its batch, and many steps make much of it.
    Fewer at once only if memory demands it.
    """
    count = len(images)

    def equal(part: slice) -> Tensor:
        size = min(EQUAL, part.stop - part.start)
        offsets = torch.arange(size, device=images.device)
        starts = range(part.start, min(part.stop, count), size)
        parts = [work((start + offsets).clamp(max=count - 1)) for start in starts]
        return torch.cat(parts)[: part.stop - part.start]

    # More rows than there are, so that no part is short for want of images.
    rows = count + samples_at_once(model, images)
    maps: list[Tensor] = []
    for some in in_batches(equal, rows, model, images):
        maps.append(some)
        if sum(map(len, maps)) >= count:
            break
    return torch.cat(maps)[:count]


def exhausted(error: Exception) -> bool:
    """Whether an error says that memory ran out."""
    return isinstance(error, (torch.OutOfMemoryError, MemoryError)) or any(
        phrase in str(error) for phrase in EXHAUSTED
    )
