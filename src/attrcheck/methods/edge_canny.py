"""Canny edges (Canny 1986)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import (
    NO_EDGE,
    SOBEL,
    TINY,
    blurred,
    brightness,
    differences,
    padded,
)

SIGMA = 1.0
WEAK, STRONG = 0.1, 0.2
"""Shares of the image's steepest gradient."""
NEIGHBOURS = ((0, 1), (1, 1), (1, 0), (1, -1))
"""Steps (dy, dx) along a gradient of 0, 45, 90 and 135 degrees."""


@method(
    "edge_canny",
    family="dummy",
    passes=(0, 0),
    dummy=True,
    default=False,
    reference="Canny 1986",
    constant=NO_EDGE,
)
def edge_canny(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """One on ridges of the smoothed gradient that are strong, or linked to one; zero elsewhere."""
    gx, gy = differences(blurred(brightness(images, dataset), SIGMA), SOBEL)
    size = torch.hypot(gx, gy)
    steepest = size.amax((1, 2), keepdim=True)
    ridge = _ridges(size, gx, gy) & (size > TINY)
    strong, weak = (ridge & (size >= share * steepest) for share in (STRONG, WEAK))
    return _linked(strong, weak).to(images)


def _ridges(size: Tensor, gx: Tensor, gy: Tensor) -> Tensor:
    """Where the gradient is no smaller than at either neighbour along its own direction."""
    angle = torch.atan2(gy, gx).mul(4 / torch.pi).round().long() % 4
    height, width = size.shape[1:]
    around = padded(size, 1)[:, 0]
    ridge = torch.zeros_like(size, dtype=torch.bool)
    for direction, (dy, dx) in enumerate(NEIGHBOURS):
        ahead, behind = (
            around[:, 1 + sign * dy : 1 + sign * dy + height, 1 + sign * dx : 1 + sign * dx + width]
            for sign in (1, -1)
        )
        # Of two equal neighbours across an edge, one is the ridge; rounding must not choose it.
        ridge |= (angle == direction) & (size >= ahead - TINY) & (size > behind + TINY)
    return ridge


def _linked(strong: Tensor, weak: Tensor) -> Tensor:
    """Strong pixels, and weak ones that a chain of weak ones joins to them."""
    while True:
        grown = weak & (F.max_pool2d(strong[:, None].float(), 3, 1, 1)[:, 0] > 0)
        if torch.equal(grown, strong):
            return strong
        strong = grown
