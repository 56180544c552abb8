"""Edge detectors as dummies: where the brightness of the image changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from scipy import ndimage
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods.dummies import TINY, brightness
from attrcheck.tensors.images import blurred, gaussian_weights

NO_EDGE = "a blank image has no edge"

SOBEL = (1.0, 2.0, 1.0)
"""Weights of a difference across its direction."""
LAPLACIAN = [[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]
SIGMA = 1.0
"""Of the Gaussian before Canny's and Marr and Hildreth's detectors."""
WEAK, STRONG = 0.1, 0.2
"""Shares of the image's steepest gradient."""
NEIGHBOURS = ((0, 1), (1, 1), (1, 0), (1, -1))
"""Steps (dy, dx) along a gradient of 0, 45, 90 and 135 degrees."""
TOUCHING = np.stack([np.zeros((3, 3)), np.ones((3, 3)), np.zeros((3, 3))])
"""Which pixels are neighbours: those of one image, corners included."""


@method("edge_gradient", family="dummy", passes=(0, 0), dummy=True, default=False, constant=NO_EDGE)
def edge_gradient(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """|dx| + |dy|, half the difference of the two neighbours along each axis."""
    return edge_strength(brightness(images, dataset), (0.0, 0.5, 0.0)).to(images)


@method(
    "edge_sobel",
    family="dummy",
    passes=(0, 0),
    dummy=True,
    reference="Sobel and Feldman 1968",
    constant=NO_EDGE,
)
def edge_sobel(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """|Gx| + |Gy| of Sobel's kernels."""
    return edge_strength(brightness(images, dataset), SOBEL).to(images)


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
    gx, gy = differences(smoothed(brightness(images, dataset)), SOBEL)
    size = torch.hypot(gx, gy)
    steepest = size.amax((1, 2), keepdim=True)
    ridge = _ridges(size, gx, gy) & (size > TINY)
    strong, weak = (ridge & (size >= share * steepest) for share in (STRONG, WEAK))
    return _linked(strong, weak).to(images)


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
    curvature = filtered(smoothed(brightness(images, dataset)), LAPLACIAN)
    curvature = curvature.where(curvature.abs() > TINY, 0)
    strength = torch.zeros_like(curvature)
    strength[:, :, :-1] += _crossing(curvature[:, :, :-1], curvature[:, :, 1:])
    strength[:, :-1] += _crossing(curvature[:, :-1], curvature[:, 1:])
    return strength.to(images)


def padded(grey: Tensor, by: int) -> Tensor:
    """Borders replicated: [N, 1, H + 2 by, W + 2 by]."""
    return F.pad(grey[:, None], (by, by, by, by), mode="replicate")


def filtered(grey: Tensor, kernel: list[list[float]]) -> Tensor:
    """Cross-correlation with a square kernel of odd side, borders replicated."""
    weight = grey.new_tensor(kernel)[None, None]
    return F.conv2d(padded(grey, len(kernel) // 2), weight)[:, 0]


def differences(grey: Tensor, across: Sequence[float]) -> tuple[Tensor, Tensor]:
    """Weighted sums of x[i + 1] - x[i - 1] in the three rows, or columns, around a pixel."""
    kernel = [[-weight, 0.0, weight] for weight in across]
    turned = [list(column) for column in zip(*kernel, strict=True)]
    return filtered(grey, kernel), filtered(grey, turned)


def edge_strength(grey: Tensor, across: Sequence[float]) -> Tensor:
    """|Gx| + |Gy| of these differences; none smaller than rounding."""
    gx, gy = differences(grey, across)
    strength = gx.abs() + gy.abs()
    return strength.where(strength > TINY, 0)


def smoothed(grey: Tensor) -> Tensor:
    """Convolved with a Gaussian, cut at four sigma, borders replicated."""
    weights = gaussian_weights(math.ceil(4 * SIGMA), SIGMA)
    return blurred(grey[:, None], weights, weights, "replicate", axes=(3, 2))[:, 0]


def _ridges(size: Tensor, gx: Tensor, gy: Tensor) -> Tensor:
    """Where the gradient is no smaller than at either neighbour along its direction."""
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
    chains, _ = ndimage.label(weak.numpy(), TOUCHING)
    return torch.from_numpy(np.isin(chains, np.unique(chains[strong.numpy()])))


def _crossing(here: Tensor, there: Tensor) -> Tensor:
    return (here - there).abs().where(here * there < 0, 0)
