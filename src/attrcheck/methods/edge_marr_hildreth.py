"""Marr-Hildreth edges: zero crossings of the Laplacian of a Gaussian (Marr and Hildreth 1980)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import NO_EDGE, TINY, blurred, brightness, filtered

SIGMA = 1.0
LAPLACIAN = [[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]


@method(
    "edge_marr_hildreth",
    family="dummy",
    passes=(0, 0),
    dummy=True,
    default=False,
    reference="Marr and Hildreth 1980",
    constant=NO_EDGE,
)
def edge_marr_hildreth(
    model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset
) -> Tensor:
    """The jump of the Laplacian of Gaussian to the right and below, where it changes sign there."""
    curvature = filtered(blurred(brightness(images, dataset), SIGMA), LAPLACIAN)
    curvature = curvature.where(curvature.abs() > TINY, 0)
    strength = torch.zeros_like(curvature)
    strength[:, :, :-1] += _crossing(curvature[:, :, :-1], curvature[:, :, 1:])
    strength[:, :-1] += _crossing(curvature[:, :-1], curvature[:, 1:])
    return strength.to(images)


def _crossing(here: Tensor, there: Tensor) -> Tensor:
    return (here - there).abs().where(here * there < 0, 0)
