"""What is done to images and maps whatever they show: blurring, enlarging."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from attrcheck.tensors.transfers import sent

Border = Literal["reflect", "replicate"]
"""How an image goes on beyond its border."""


def gaussian_weights(radius: int, sigma: float, dtype: torch.dtype = torch.float64) -> Tensor:
    """exp(-x^2 / (2 sigma^2)) at -radius to radius, over their sum: [2 radius + 1]."""
    offsets = torch.arange(-radius, radius + 1, dtype=dtype)
    weights = torch.exp(-(offsets**2) / (2 * sigma**2))
    return weights / weights.sum()


def blurred(
    images: Tensor, down: Tensor, right: Tensor, border: Border, axes: tuple[int, ...] = (2, 3)
) -> Tensor:
    """Images [N, C, H, W], weighted along columns and rows: a blur, if the weights are Gaussian.

    axes: the order of the two passes, which decides the last bits.
    """
    channels, height, width = images.shape[1], len(down) // 2, len(right) // 2
    images = F.pad(images, (width, width, height, height), mode=border)
    kernels = {2: sent(down.view(1, 1, -1, 1), images), 3: sent(right.view(1, 1, 1, -1), images)}
    for axis in axes:
        images = F.conv2d(images, kernels[axis].repeat(channels, 1, 1, 1), groups=channels)
    return images


def enlarge(maps: Tensor, images: Tensor) -> Tensor:
    """Maps [N, h, w] bilinearly resized to the images: [N, H, W]."""
    size = images.shape[2:]
    return F.interpolate(maps[:, None], size, mode="bilinear", align_corners=False)[:, 0]
