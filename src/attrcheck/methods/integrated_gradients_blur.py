"""Integrated gradients from the blurred image (Sturmfels et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.methods import method
from attrcheck.methods._gradients import STEPS, integrated

SIDE, RADIUS, SIGMA = 224, 25, 41.0
"""The kernel is 51 x 51 with sigma 41 for images of 224 pixels, and scales with them."""


def blur(images: Tensor) -> Tensor:
    """A Gaussian blur that mirrors the image at its borders."""
    scale = min(images.shape[2:]) / SIDE
    radius = max(1, round(RADIUS * scale))
    offsets = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    kernel = torch.softmax(-(offsets**2) / (2 * (SIGMA * scale) ** 2), 0)
    channels = images.shape[1]
    padded = F.pad(images, (radius,) * 4, mode="reflect")
    rows = F.conv2d(padded, kernel.expand(channels, 1, 1, -1), groups=channels)
    return F.conv2d(rows, kernel[:, None].expand(channels, 1, -1, 1), groups=channels)


@method(
    "integrated_gradients_blur",
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Sturmfels et al. 2020",
    constant="zero everywhere if the image is of one colour, since its blurred copy is the same",
)
def integrated_gradients_blur(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of (x - b) * mean of df/dx on the way from b, the blurred image, to x.

    The map sums to f(x) - f(b).
    """
    return integrated(model, images, targets, blur(images))
