"""Gradients integrated on the way from a baseline to the image."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._rules import backpropagate
from attrcheck.tensors.batching import in_batches
from attrcheck.tensors.images import blurred
from attrcheck.tensors.transfers import sent

STEPS = 50
"""Nodes of an integral along a path."""
BACKGROUND = 10
"""Images that stand for the whole dataset."""
PLACES = 5
"""Random places on the way from each background image."""
SIDE, RADIUS, SIGMA = 224, 25, 41.0
"""Of the blurred baseline: 51 x 51 with sigma 41 for images of 224 pixels, and scales with them."""


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
    """Integrated gradients from baselines [N or 1, C, H, W], by Gauss-Legendre nodes."""
    places, weights = (
        sent(torch.tensor(values, dtype=torch.float64), images) for values in _nodes(STEPS)
    )
    return integrate(model, images, targets, baselines[:, None], places[None], weights)


def blurred_baseline(images: Tensor) -> Tensor:
    """A Gaussian blur that mirrors the image at its borders."""
    scale = min(images.shape[2:]) / SIDE
    radius = max(1, round(RADIUS * scale))
    offsets = torch.arange(-radius, radius + 1, device=images.device, dtype=images.dtype)
    # By softmax, whose last bit is not always that of `gaussian_weights`.
    weights = torch.softmax(-(offsets**2) / (2 * (SIGMA * scale) ** 2), 0)
    return blurred(images, weights, weights, "reflect", axes=(3, 2))


@cache
def _nodes(steps: int) -> tuple[list[float], list[float]]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    return ((nodes + 1) / 2).tolist(), (weights / 2).tolist()


def background(dataset: Dataset, images: Tensor) -> Tensor:
    """The first images of the dataset, normalised: a fair sample, whichever are looked at."""
    return dataset.normalise(sent(dataset.images[:BACKGROUND], images))


@method(
    "integrated_gradients",
    default=True,
    axioms={
        "completeness": 0.05,
        "dummy_feature": 1e-3,
        "symmetry": 1e-3,
        "implementation_invariance": 1e-3,
        "scaling": 1e-3,
    },
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Sundararajan et al. 2017",
)
def integrated_gradients(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * mean of df/dx on the way from zero to x.

    50 Gauss-Legendre steps; the map sums to f(x) - f(0).
    """
    return integrated(model, images, targets, torch.zeros_like(images[:1]))


@method(
    "integrated_gradients_abs",
    absolute_of="integrated_gradients",
    default=True,
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Sundararajan et al. 2017",
)
def integrated_gradients_abs(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """|map of integrated_gradients|: channels are summed before the sign is dropped."""
    return integrated_gradients(model, images, targets).abs()


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
    return integrated(model, images, targets, blurred_baseline(images))


@method(
    "integrated_gradients_uniform",
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Sturmfels et al. 2020",
)
def integrated_gradients_uniform(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """Sum over channels of (x - u) * mean of df/dx on the way from u to x.

    u is uniform in (-1, 1), normalised, for each image its own; the map sums to f(x) - f(u).
    """
    shape = images.shape[1:]
    # Drawn on the CPU: generators of other devices give other numbers.
    noise = [torch.rand(shape, generator=torch.Generator().manual_seed(seed)) for seed in seeds]
    return integrated(model, images, targets, sent(2 * torch.stack(noise) - 1, images))


@method(
    "integrated_gradients_uniform_abs",
    absolute_of="integrated_gradients_uniform",
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Sturmfels et al. 2020",
)
def integrated_gradients_uniform_abs(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """|map of integrated_gradients_uniform|: channels are summed before the sign is dropped."""
    return integrated_gradients_uniform(model, images, targets, seeds=seeds).abs()


@method(
    "expected_gradients",
    family="gradient",
    passes=(BACKGROUND * PLACES, BACKGROUND * PLACES),
    reference="Erion et al. 2019",
    constant="zero everywhere if the image itself is the only one of the dataset",
)
def expected_gradients(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
) -> Tensor:
    """Sum over channels of the mean of (x - b) * df/dx at b + a (x - b), over b and a.

    b: the first 10 images of the dataset; a: on the way from each, one place drawn in every fifth.
    In expectation the map sums to f(x) - mean of f(b).
    """
    references = background(dataset, images).repeat_interleave(PLACES, 0)
    fifths = torch.arange(len(references)) % PLACES
    draws = [
        torch.rand(len(references), generator=torch.Generator().manual_seed(seed)) for seed in seeds
    ]
    places = sent((fifths + torch.stack(draws)) / PLACES, images)
    weights = images.new_full((len(references),), 1 / len(references))
    return integrate(model, images, targets, references[None], places, weights)
