"""Integrated gradients (Sundararajan et al. 2017)."""

from __future__ import annotations

from captum.attr import IntegratedGradients
from torch import Tensor, nn

from attrcheck.methods import method

STEPS = 50
BATCH_ELEMENTS = 64 * 3 * 32 * 32
"""Input elements of one inner batch; larger ones are slower on a CPU."""
BATCH_IMAGES = 8
"""The least number of images in one, so that large images do not run one by one."""


@method("integrated_gradients")
def integrated_gradients(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * mean of df/dx on the way from zero to x.

    50 Gauss-Legendre steps; the map sums to f(x) - f(0).
    """
    inputs = images.detach().clone().requires_grad_()
    batch = max(BATCH_IMAGES, BATCH_ELEMENTS // images[0].numel(), len(images))
    attribution: Tensor = IntegratedGradients(model).attribute(
        inputs,
        target=targets,
        n_steps=STEPS,
        method="gausslegendre",
        internal_batch_size=batch,
    )
    return attribution.detach().sum(1)
