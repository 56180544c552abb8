"""What the gradient family shares: gradients on paths between images, and under noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods._rules import backpropagate
from attrcheck.store.seeds import derive
from attrcheck.tensors.batching import in_batches

Base = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""A method without randomness of its own, to be smoothed."""
Statistic = Callable[[Tensor], Tensor]
"""Of maps [N, samples, H, W], over the samples."""

STEPS = 50
"""Nodes of an integral along a path."""
BACKGROUND = 10
"""Images that stand for the whole dataset."""


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


def integrate(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    references: Tensor,
    places: Tensor,
    weights: Tensor,
) -> Tensor:
    """Sum over steps k and channels of w_k (x - r_k) * df/dx at r_k + p_k (x - r_k): [N, H, W].

    References [N or 1, K or 1, C, H, W], places [N or 1, K] on the way to x, weights [K].
    """
    shape = (len(images), len(weights))
    references = references.expand(*shape, *images.shape[1:])
    places = places.expand(shape)

    def work(part: slice) -> Tensor:
        flat = torch.arange(part.start, part.stop, device=images.device)
        rows, steps = flat // len(weights), flat % len(weights)
        start = references[rows, steps]
        way = images[rows] - start
        points = torch.addcmul(start, places[rows, steps].view(-1, 1, 1, 1), way)
        return (way * backpropagate(model, points, targets[rows])).sum(1)

    parts = list(in_batches(work, len(images) * len(weights), model, images))
    return torch.einsum("nkhw,k->nhw", torch.cat(parts).view(*shape, *images.shape[2:]), weights)


def integrated(model: nn.Module, images: Tensor, targets: Tensor, baselines: Tensor) -> Tensor:
    """Integrated gradients from a baseline each, [N or 1, C, H, W], by Gauss-Legendre nodes."""
    places, weights = (images.new_tensor(values) for values in _nodes(STEPS))
    return integrate(model, images, targets, baselines[:, None], places[None], weights)


def background(dataset: Dataset, images: Tensor) -> Tensor:
    """The first images of the dataset, normalised: a fair sample, whichever are looked at."""
    return dataset.normalise(dataset.images[:BACKGROUND].to(images))


@cache
def _nodes(steps: int) -> tuple[list[float], list[float]]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()
