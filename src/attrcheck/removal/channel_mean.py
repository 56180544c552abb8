"""Replace removed pixels by the image's own mean colour."""

from __future__ import annotations

import torch
from torch import Tensor

from attrcheck.removal import removal


@removal("channel_mean", fixed=True)
def channel_mean(images: Tensor, keep: Tensor) -> Tensor:
    """The mean of each channel over the whole intact image."""
    return torch.where(keep[:, None].bool(), images, images.mean((2, 3), keepdim=True))
