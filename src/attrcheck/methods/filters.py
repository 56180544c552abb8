"""Image filters as dummies: local variance and entropy, and the energy of frequencies."""

from __future__ import annotations

import math
from math import inf

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods.dummies import BLANK, TINY, brightness

WINDOW = 9
"""Side of the window of the local entropy."""
BINS = 16


@method(
    "local_variance_3", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK
)
def local_variance_3(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Variance of the brightness in a window of 3x3, or the largest odd one in the image."""
    return local_variance(brightness(images, dataset), 3).to(images)


@method("local_variance_9", family="dummy", passes=(0, 0), dummy=True, constant=BLANK)
def local_variance_9(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Variance of the brightness in a window of 9x9, or the largest odd one in the image."""
    return local_variance(brightness(images, dataset), 9).to(images)


@method(
    "local_variance_31", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK
)
def local_variance_31(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Variance of the brightness in a window of 31x31, or the largest odd one in the image."""
    return local_variance(brightness(images, dataset), 31).to(images)


@method("local_entropy", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK)
def local_entropy(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """-sum of p log2 p over a histogram of 16 equal bins in [0, 1], in a window of 9x9."""
    grey = brightness(images, dataset)
    bins = (grey * BINS).long().clamp(0, BINS - 1)
    shares = local_mean(F.one_hot(bins, BINS).movedim(3, 1).to(grey), window(WINDOW, grey))
    entropy: Tensor = -torch.special.xlogy(shares, shares).sum(1) / math.log(2)
    return entropy.to(images)


@method("frequency_low", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK)
def frequency_low(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """Squared image after a radial filter that keeps what is below .4 of the Nyquist frequency."""
    return band_energy(brightness(images, dataset), 0.0, 0.4).to(images)


@method("frequency_band", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK)
def frequency_band(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Squared image after a radial filter that keeps .3 to .6 of the Nyquist frequency."""
    return band_energy(brightness(images, dataset), 0.3, 0.6).to(images)


@method("frequency_high", family="dummy", passes=(0, 0), dummy=True, constant=BLANK)
def frequency_high(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """Squared image after a radial filter that keeps what is above .6 of the Nyquist frequency."""
    return band_energy(brightness(images, dataset), 0.6, inf).to(images)


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


def band_energy(grey: Tensor, low: float, high: float) -> Tensor:
    """Squared image after keeping radial frequencies in [low, high) of the Nyquist frequency."""
    height, width = grey.shape[1:]
    y, x = (torch.fft.fftfreq(side, dtype=grey.dtype) for side in (height, width))
    radius = 2 * torch.hypot(y[:, None], x[None])
    kept = (radius >= low) & (radius < high)
    image: Tensor = torch.fft.ifft2(torch.fft.fft2(grey) * kept).real
    return image.where(image.abs() > TINY, 0).square()
