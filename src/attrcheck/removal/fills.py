"""Removals that put something else in place of a pixel, whichever others are kept."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from attrcheck.removal import removal
from attrcheck.tensors.draws import uniform_draws
from attrcheck.tensors.images import blurred, gaussian_weights
from attrcheck.tensors.transfers import sent

SIGMA, RADIUS = 41 / 224, 25 / 224
"""In sides of the image: single deletion blurs 224 pixels by 51x51 with a sigma of 41."""


@removal("mean", fixed=True)
def mean(images: Tensor, keep: Tensor) -> Tensor:
    """Zero in all channels, which is the dataset's mean once images are normalised."""
    return images * keep[:, None]


@removal("channel_mean", fixed=True)
def channel_mean(images: Tensor, keep: Tensor) -> Tensor:
    """The mean of each channel over the whole intact image."""
    return torch.where(keep[:, None].bool(), images, images.mean((2, 3), keepdim=True))


@removal("constant", fixed=True)
def constant(images: Tensor, keep: Tensor, value: float = 1.0) -> Tensor:
    """`value` in all channels, in normalised units: by default a standard deviation too bright."""
    return torch.where(keep[:, None].bool(), images, images.new_full((), value))


@removal("uniform", fixed=True)
def uniform(images: Tensor, keep: Tensor, *, seeds: Sequence[int]) -> Tensor:
    """U(-1, 1) in normalised units, drawn once for all pixels of an image from its seed."""
    noise = 2 * sent(uniform_draws(tuple(seeds), tuple(images.shape[1:])), images) - 1
    return torch.where(keep[:, None].bool(), images, noise)


@removal("histogram", fixed=True)
def histogram(images: Tensor, keep: Tensor, *, seeds: Sequence[int]) -> Tensor:
    """The colour of another pixel of the image, any of them, drawn for each from its seed."""
    flat = images.flatten(2)
    draws = uniform_draws(tuple(seeds), (flat.shape[2],)).to(images.device)
    places = (draws * flat.shape[2]).long().clamp(max=flat.shape[2] - 1)
    drawn = flat.gather(2, places[:, None].expand_as(flat)).view_as(images)
    return torch.where(keep[:, None].bool(), images, drawn)


@removal("blur", fixed=True)
def blur(images: Tensor, keep: Tensor, sigma: float = SIGMA, radius: float = RADIUS) -> Tensor:
    """A Gaussian blur, its lengths in sides of the image, borders reflected."""
    return torch.where(keep[:, None].bool(), images, blurred_copy(images, sigma, radius))


def blurred_copy(images: Tensor, sigma: float, radius: float) -> Tensor:
    """Images after a true Gaussian of `sigma`, cut off at `radius`, along both axes."""
    down, right = (
        gaussian_weights(min(side - 1, max(1, round(radius * side))), sigma * side)
        for side in images.shape[2:]
    )
    return blurred(images, down, right, "reflect")
