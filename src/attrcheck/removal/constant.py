"""Replace removed pixels by one constant."""

from __future__ import annotations

import torch
from torch import Tensor

from attrcheck.removal import removal


@removal("constant", fixed=True)
def constant(images: Tensor, keep: Tensor, value: float = 1.0) -> Tensor:
    """`value` in all channels, in normalised units: by default a standard deviation too bright."""
    return torch.where(keep[:, None].bool(), images, images.new_tensor(value))
