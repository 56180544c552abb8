"""Batches of one size, for methods that take many steps from an image to its map."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attrcheck.memory import samples_at_once

TOGETHER = 16


def in_equal_batches(work: Callable[[Tensor], Tensor], model: nn.Module, images: Tensor) -> Tensor:
    """`work` on the rows of sixteen images after another, the last filled up with the last image.

    Of one size, because a float depends on the size of its batch, and many steps make much of it.
    """
    size = min(TOGETHER, samples_at_once(model, images))
    starts = torch.arange(0, len(images), size, device=images.device)
    offsets = torch.arange(size, device=images.device)
    found = [work((start + offsets).clamp(max=len(images) - 1)) for start in starts]
    return torch.cat(found)[: len(images)]
