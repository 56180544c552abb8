"""Noisy copies of an image, and statistics of the maps that a method makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attrcheck.store.seeds import derive
from attrcheck.tensors.batching import in_batches
from attrcheck.tensors.transfers import sent

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

    def of(self, images: Tensor, copies: Sequence[tuple[int, int]]) -> Tensor:
        """The noise of copies, one of each image, known by the image's seed and their number.

        Drawn on the CPU, since other devices give other numbers.
        """
        seeds = (derive(seed, "noise", str(number)) for seed, number in copies)
        generators = (torch.Generator().manual_seed(seed) for seed in seeds)
        draws = [torch.randn(images.shape[1:], generator=generator) for generator in generators]
        size: Tensor | float = self.std
        if self.relative:
            size = (images.amax((1, 2, 3), True) - images.amin((1, 2, 3), True)) * self.std
        return sent(torch.stack(draws), images) * size


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
        pairs = (divmod(place, noise.samples) for place in range(part.start, part.stop))
        copies = [(seeds[row], number) for row, number in pairs]
        rows = torch.arange(part.start, part.stop, device=images.device) // noise.samples
        chosen = images[rows]
        return base(model, chosen + noise.of(chosen, copies), targets[rows])

    parts = list(in_batches(work, len(images) * noise.samples, model, images))
    return statistic(torch.cat(parts).view(len(images), noise.samples, *images.shape[2:]))
