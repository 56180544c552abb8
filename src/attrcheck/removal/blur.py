"""Replace removed pixels by those of a blurred copy."""

from __future__ import annotations

import functools
import math

import torch
from torch import Tensor
from torch.nn import functional as F

from attrcheck.removal import removal

SIGMA, RADIUS = 41 / 224, 25 / 224
"""In sides of the image: single deletion blurs 224 pixels by 51x51 with a sigma of 41."""


@removal("blur", fixed=True)
def blur(images: Tensor, keep: Tensor, sigma: float = SIGMA, radius: float = RADIUS) -> Tensor:
    """A Gaussian blur, its lengths in sides of the image, borders reflected."""
    return torch.where(keep[:, None].bool(), images, blurred(images, sigma, radius))


def blurred(images: Tensor, sigma: float, radius: float) -> Tensor:
    """Images after a true Gaussian of `sigma`, cut off at `radius`, along both axes."""
    for axis in (2, 3):
        side = images.shape[axis]
        reach = min(side - 1, max(1, round(radius * side)))
        kernel = _kernel(reach, sigma * side).to(images)
        pad = (0, 0, reach, reach) if axis == 2 else (reach, reach, 0, 0)
        flat = F.pad(images, pad, mode="reflect").flatten(0, 1)[:, None]
        shape = (1, 1, -1, 1) if axis == 2 else (1, 1, 1, -1)
        images = F.conv2d(flat, kernel.view(shape)).view_as(images)
    return images


@functools.lru_cache(maxsize=16)
def _kernel(reach: int, sigma: float) -> Tensor:
    weights = [math.exp(-(x**2) / (2 * sigma**2)) for x in range(-reach, reach + 1)]
    return torch.tensor([weight / math.fsum(weights) for weight in weights])
