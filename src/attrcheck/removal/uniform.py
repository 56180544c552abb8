"""Replace removed pixels by uniform noise."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attrcheck.removal import removal
from attrcheck.tensors.draws import uniform_draws


@removal("uniform", fixed=True)
def uniform(images: Tensor, keep: Tensor, *, seeds: Sequence[int]) -> Tensor:
    """U(-1, 1) in normalised units, drawn once for all pixels of an image from its seed."""
    noise = 2 * uniform_draws(tuple(seeds), tuple(images.shape[1:])).to(images) - 1
    return torch.where(keep[:, None].bool(), images, noise)
