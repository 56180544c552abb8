"""Integrated gradients from the zero image (Sundararajan et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import STEPS, integrated


@method(
    "integrated_gradients",
    default=True,
    axioms={
        "completeness": 0.05,
        "dummy_feature": 1e-3,
        "symmetry": 1e-3,
        "implementation_invariance": 1e-3,
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
