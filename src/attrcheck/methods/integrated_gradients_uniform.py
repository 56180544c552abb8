"""Integrated gradients from uniform noise (Sundararajan et al. 2017, Sturmfels et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import STEPS, integrated


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
    return integrated(model, images, targets, (2 * torch.stack(noise) - 1).to(images))
