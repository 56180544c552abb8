"""Batches of one size, for methods that take many steps from an image to its map."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attrcheck.tensors.batching import in_batches, samples_at_once

TOGETHER = 16


def in_equal_batches(work: Callable[[Tensor], Tensor], model: nn.Module, images: Tensor) -> Tensor:
    """`work` on the rows of sixteen images after another, the last filled up with the last image.

    Of one size, because a float depends on the size of its batch, and many steps make much of it.
    Fewer at once only if memory demands it.
    """
    count = len(images)

    def equal(part: slice) -> Tensor:
        size = min(TOGETHER, part.stop - part.start)
        offsets = torch.arange(size, device=images.device)
        starts = range(part.start, min(part.stop, count), size)
        found = [work((start + offsets).clamp(max=count - 1)) for start in starts]
        return torch.cat(found)[: part.stop - part.start]

    # More rows than there are, so that no part is short for want of images.
    rows = count + samples_at_once(model, images)
    maps: list[Tensor] = []
    for some in in_batches(equal, rows, model, images):
        maps.append(some)
        if sum(map(len, maps)) >= count:
            break
    return torch.cat(maps)[:count]
