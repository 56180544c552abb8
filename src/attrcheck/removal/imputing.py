"""Replace removed pixels by means of their neighbours, and noise: the imputation of ROAD."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from attrcheck.removal import blend, removal
from attrcheck.removal._imputation import impute
from attrcheck.tensors.draws import normal_draws


@removal("noisy_linear")
def noisy_linear(
    images: Tensor,
    keep: Tensor,
    noise: float = 0.01,
    generator: Generator | None = None,
    *,
    seeds: Sequence[int] | None = None,
    tolerance: float = 1e-3,
) -> Tensor:
    """Make each removed pixel the mean of its eight neighbours, edges twice corners, plus noise.

    Gaussian noise, independent in each removed pixel and channel, with the standard deviation
    `noise` in the units of the images given; ROAD as published works on pixels from 0 to 1. It is
    drawn from the seeds, one per image, or from the generator, or else from torch's global one.
    An image of which nothing is kept becomes zero, the dataset's mean once images are normalised.
    The means are right to `tolerance`, in standard deviations of the channel's kept pixels.
    """
    _check(images, keep, seeds, tolerance)
    kept = keep.bool()[:, None].to(images.dtype)
    filled = impute(images.detach(), kept, tolerance)
    if noise:
        filled.add_(_draw(images, generator, seeds), alpha=noise)
    return blend(images, kept, filled.to(images.dtype))


def _check(images: Tensor, keep: Tensor, seeds: Sequence[int] | None, tolerance: float) -> None:
    if images.dim() != 4 or not images.is_floating_point():
        raise ValueError(
            f"noisy_linear wants images [N, C, H, W] of floats, not {list(images.shape)} "
            f"of {images.dtype}"
        )
    if keep.shape != images[:, 0].shape:
        raise ValueError(
            f"noisy_linear wants keep [N, H, W], 1 where a pixel is kept: for images "
            f"{list(images.shape)} that is {list(images[:, 0].shape)}, not {list(keep.shape)}"
        )
    if seeds is not None and len(seeds) != len(images):
        raise ValueError(
            f"noisy_linear wants one seed per image: {len(images)} of them, not {len(seeds)}"
        )
    if not tolerance > 0:
        raise ValueError(f"noisy_linear wants a tolerance above zero, not {tolerance:g}")


def _draw(images: Tensor, generator: Generator | None, seeds: Sequence[int] | None) -> Tensor:
    """N(0, 1) for every pixel, so that what a pixel gets does not depend on which are removed."""
    if seeds is not None:
        return normal_draws(tuple(seeds), tuple(images.shape[1:])).to(images)
    device = images.device if generator is None else generator.device
    return torch.randn(images.shape, generator=generator, device=device).to(images)
