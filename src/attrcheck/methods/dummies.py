"""Dummies that see the image or nothing: the floor that every method must beat.

Those that look at the image, here and in `edges` and `filters`, see its brightness: the mean over
the channels of the denormalised image, [N, H, W] in [0, 1]. They work in double precision on the
CPU: that costs nothing, and rounding ranks nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method

BLANK = "a blank image has nothing to rank by"

TINY = 1e-9
"""Of a brightness: what is smaller is rounding, and must not rank the pixels of a flat area."""


def brightness(images: Tensor, dataset: Dataset) -> Tensor:
    """Mean over channels of images * std + mean: [N, H, W]."""
    return dataset.denormalise(images.detach().cpu().double()).mean(1)


@method("random", family="dummy", passes=(0, 0), dummy=True)
def random(model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]) -> Tensor:
    """Uniform noise in [0, 1) from each image's own seed."""
    size = images.shape[2:]
    # Drawn on the CPU: generators of other devices give other numbers.
    noise = [torch.rand(size, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return torch.stack(noise).to(images)


@method("intensity", family="dummy", passes=(0, 0), dummy=True, constant=BLANK)
def intensity(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """The mean over the channels of the denormalised image."""
    return brightness(images, dataset).to(images)


def gaussian_centre(images: Tensor, share: float) -> Tensor:
    """exp(-(dy^2 / sy^2 + dx^2 / sx^2) / 2) around the centre; sigma: a share of each side.

    Objects are mostly in the middle.
    """
    height, width = images.shape[2:]
    y, x = (
        (torch.arange(side, dtype=images.dtype, device=images.device) - (side - 1) / 2)
        / (side * share)
        for side in (height, width)
    )
    bump = torch.exp(-(y[:, None] ** 2 + x[None] ** 2) / 2)
    return bump.repeat(len(images), 1, 1)


@method("gaussian_centre_2", family="dummy", passes=(0, 0), dummy=True, default=False)
def gaussian_centre_2(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """exp(-d^2 / (2 sigma^2)), d the distance from the centre, sigma = side / 2."""
    return gaussian_centre(images, 1 / 2)


@method("gaussian_centre_4", family="dummy", passes=(0, 0), dummy=True)
def gaussian_centre_4(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """exp(-d^2 / (2 sigma^2)), d the distance from the centre, sigma = side / 4."""
    return gaussian_centre(images, 1 / 4)


@method("gaussian_centre_8", family="dummy", passes=(0, 0), dummy=True, default=False)
def gaussian_centre_8(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """exp(-d^2 / (2 sigma^2)), d the distance from the centre, sigma = side / 8."""
    return gaussian_centre(images, 1 / 8)
