"""What the dummies share: the brightness of the image as it was, and small image filters.

All of them look at the mean over the channels of the denormalised image, [N, H, W] in [0, 1], in
double precision and on the CPU: they cost nothing there, and rounding ranks nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from attrcheck.contracts import Dataset

BLANK = "a blank image has nothing to rank by"
NO_EDGE = "a blank image has no edge"

TINY = 1e-9
"""Of a brightness: what is smaller is rounding, and must not rank the pixels of a flat area."""

SOBEL = (1.0, 2.0, 1.0)
"""Weights of a difference across its direction."""


def brightness(images: Tensor, dataset: Dataset) -> Tensor:
    """Mean over channels of images * std + mean: [N, H, W]."""
    seen = images.detach().cpu().double()
    mean, std = (
        seen.new_tensor(values).view(1, -1, 1, 1) for values in (dataset.mean, dataset.std)
    )
    return (seen * std + mean).mean(1)


def padded(grey: Tensor, by: int, mode: str = "replicate") -> Tensor:
    """Borders continued: [N, 1, H + 2 by, W + 2 by]."""
    return F.pad(grey[:, None], (by, by, by, by), mode=mode)


def filtered(grey: Tensor, kernel: list[list[float]]) -> Tensor:
    """Cross-correlation with a square kernel of odd side, borders replicated."""
    weight = grey.new_tensor(kernel)[None, None]
    return F.conv2d(padded(grey, len(kernel) // 2), weight)[:, 0]


def differences(grey: Tensor, across: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Weighted sums of x[i + 1] - x[i - 1] in the three rows, or columns, around a pixel."""
    kernel = [[-weight, 0.0, weight] for weight in across]
    turned = [list(column) for column in zip(*kernel, strict=True)]
    return filtered(grey, kernel), filtered(grey, turned)


def edges(grey: Tensor, across: Sequence[float]) -> Tensor:
    """|Gx| + |Gy| of these differences; none smaller than rounding."""
    gx, gy = differences(grey, across)
    strength = gx.abs() + gy.abs()
    return strength.where(strength > TINY, 0)


def blurred(grey: Tensor, sigma: float) -> Tensor:
    """Convolved with a Gaussian, cut at four sigma, borders replicated."""
    radius = math.ceil(4 * sigma)
    places = torch.arange(-radius, radius + 1, dtype=grey.dtype)
    weight = torch.exp(-(places**2) / (2 * sigma**2))
    weight = weight / weight.sum()
    rows = F.conv2d(padded(grey, radius), weight[None, None, None])
    return F.conv2d(rows, weight[None, None, :, None])[:, 0]


def window(kernel: int, grey: Tensor) -> int:
    """The kernel, or the largest odd one that fits into the image."""
    side = min(grey.shape[1:])
    return min(kernel, side - 1 + side % 2)


def local_mean(maps: Tensor, kernel: int) -> Tensor:
    """Mean over the window around each pixel, reflected at the borders; maps [N, C, H, W]."""
    by = kernel // 2
    around = F.pad(maps, (by, by, by, by), mode="reflect")
    return F.avg_pool2d(F.avg_pool2d(around, (kernel, 1), 1), (1, kernel), 1)


def local_variance(grey: Tensor, kernel: int) -> Tensor:
    """E[x^2] - E[x]^2 over the window."""
    kernel = window(kernel, grey)
    x = grey[:, None]
    variance = local_mean(x**2, kernel) - local_mean(x, kernel) ** 2
    return variance.where(variance > TINY, 0)[:, 0]


def gaussian_centre(images: Tensor, share: float) -> Tensor:
    """exp(-(dy^2 / sy^2 + dx^2 / sx^2) / 2) around the centre; sigma: a share of each side."""
    height, width = images.shape[2:]
    y, x = (
        (torch.arange(side, dtype=images.dtype, device=images.device) - (side - 1) / 2)
        / (side * share)
        for side in (height, width)
    )
    bump = torch.exp(-(y[:, None] ** 2 + x[None] ** 2) / 2)
    return bump.repeat(len(images), 1, 1)


def band_energy(grey: Tensor, low: float, high: float) -> Tensor:
    """Squared image after keeping radial frequencies in [low, high) of the Nyquist frequency."""
    height, width = grey.shape[1:]
    y, x = (torch.fft.fftfreq(side, dtype=grey.dtype) for side in (height, width))
    radius = 2 * torch.hypot(y[:, None], x[None])
    kept = (radius >= low) & (radius < high)
    image: Tensor = torch.fft.ifft2(torch.fft.fft2(grey) * kept).real
    return image.where(image.abs() > TINY, 0).square()
