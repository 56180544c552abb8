"""LIME on superpixels (Ribeiro et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._superpixels import denormalised, game, spread, superpixels

SAMPLES = 256
WIDTH = 0.25
"""Width of the kernel over cosine distances from the whole image."""
RIDGE = 1.0
"""Penalty on squared coefficients."""


@method("lime", family="perturbation", passes=(SAMPLES, 0), reference="Ribeiro et al. 2016")
def lime(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
) -> Tensor:
    """Coefficients of a local linear model of the target's logit, spread over superpixels' pixels.

    By ridge regression on 256 samples in which every superpixel is zero with probability 1/2.
    """
    return lime_maps(model, images, targets, seeds, dataset, SAMPLES)


def lime_maps(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    dataset: Dataset,
    samples: int,
) -> Tensor:
    """The map of every image from its own samples."""
    maps = []
    regions = map(superpixels, denormalised(images, dataset))
    for image, target, labels, seed in zip(images.detach(), targets, regions, seeds, strict=True):
        generator = torch.Generator().manual_seed(seed)
        present = torch.rand(samples, int(labels.max()) + 1, generator=generator) < 0.5
        present[0] = True
        values = game(model, image, target, labels, present)
        maps.append(spread(local_coefficients(present, values), labels))
    return torch.stack(maps).to(images)


def local_coefficients(present: Tensor, values: Tensor) -> Tensor:
    """Ridge regression with intercept, weighted by nearness to the whole image.

    The weight is exp(-(d / WIDTH)^2 / 2), where d = 1 - sqrt(share that is present) is the cosine
    distance from the whole.
    """
    present = present.double()
    distance = 1 - present.mean(1).sqrt()
    weights = torch.exp(-((distance / WIDTH) ** 2) / 2)
    shares = weights / weights.sum()
    centred = present - shares @ present
    gram = centred.T @ (weights[:, None] * centred)
    moment = centred.T @ (weights * (values - shares @ values))
    gram.diagonal().add_(RIDGE)
    found: Tensor = torch.linalg.solve(gram, moment)
    return found
