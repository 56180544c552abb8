"""Noisy copies of an image, and statistics of the maps that a method makes of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attrcheck.store.seeds import derive
from attrcheck.tensors.batching import in_batches

Base = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""A method that draws no random numbers, to be smoothed."""
Statistic = Callable[[Tensor], Tensor]
"""Of maps [N, samples, H, W], over the samples."""


@dataclass(frozen=True)
class Noise:
    """How many noisy copies of an image, and their standard deviation in normalised space.

    A relative one is a share of the image's own value range.
    """

    samples: int = 16
    std: float = 0.15
    relative: bool = True

    def of(self, image: Tensor, seed: int, sample: int) -> Tensor:
        """The noise of one copy; drawn on the CPU, since other devices give other numbers."""
        generator = torch.Generator().manual_seed(derive(seed, "noise", str(sample)))
        size = (image.max() - image.min()) * self.std if self.relative else self.std
        return torch.randn(image.shape, generator=generator).to(image) * size


OURS = Noise()
IDSDS = Noise(samples=4, std=1.0, relative=False)
SOUNDNESS = Noise(samples=20, std=0.3, relative=False)


def mean(maps: Tensor) -> Tensor:
    """SmoothGrad."""
    return maps.mean(1)


def mean_square(maps: Tensor) -> Tensor:
    """SmoothGrad-squared: the mean of the squared maps."""
    return maps.square().mean(1)


def variance(maps: Tensor) -> Tensor:
    """VarGrad: the mean of the squared distances to the mean map."""
    return maps.var(1, correction=0)


def noisy(
    base: Base,
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    noise: Noise = OURS,
    statistic: Statistic = mean,
) -> Tensor:
    """A statistic of the base's maps [H, W] of noisy copies of each image."""

    def work(part: slice) -> Tensor:
        pairs = [divmod(place, noise.samples) for place in range(part.start, part.stop)]
        copies = [images[row] + noise.of(images[row], seeds[row], copy) for row, copy in pairs]
        return base(model, torch.stack(copies), targets[[row for row, _ in pairs]])

    parts = list(in_batches(work, len(images) * noise.samples, model, images))
    return statistic(torch.cat(parts).view(len(images), noise.samples, *images.shape[2:]))
