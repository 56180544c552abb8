"""Extremal perturbation: the region of given area that keeps the class best (Fong et al. 2019)."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.methods import method
from attrcheck.methods._adam import Adam
from attrcheck.methods._rules import backpropagate
from attrcheck.tensors.batching import in_equal_batches
from attrcheck.tensors.transfers import sent

AREA = 0.3
STEPS = 200
RATE = 0.02
CELLS = 16
"""The mask is a grid of CELLS x CELLS, enlarged to the image."""
RADIUS = 2
"""In cells: how far a cell of the mask reaches, fading from one on as a Gaussian does."""
SHARPNESS = 20
"""Of the smooth maximum."""
PRESSURE = 30, 3000
"""Weight of the area's constraint at the first and at the last step."""


@method(
    "extremal_perturbation",
    family="perturbation",
    passes=(STEPS, STEPS),
    reference="Fong et al. 2019",
)
def extremal_perturbation(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The mask m, smooth and of area 0.3, that keeps f(x m) highest: [N, H, W] in [0, 1].

    Simpler than published: what is masked fades to zero, no blur; smoothing is a max-convolution
    on the mask's own grid, then bilinear; 200 steps of Adam; no jitter, so no random numbers.
    """
    return extremal_masks(model, images, targets, STEPS)


def extremal_masks(model: nn.Module, images: Tensor, targets: Tensor, steps: int) -> Tensor:
    """The mask of every image."""
    images = images.detach()

    def optimise(rows: Tensor) -> Tensor:
        return _optimise(model, images[rows], targets[rows], steps)

    return in_equal_batches(optimise, model, images)


def _optimise(model: nn.Module, images: Tensor, targets: Tensor, steps: int) -> Tensor:
    size = [min(CELLS, side) for side in images.shape[2:]]
    grid = images.new_full((len(images), 1, *size), 0.5)
    first, last = PRESSURE
    # A large epsilon keeps Adam from taking full steps along slopes that are rounding noise.
    adam = Adam(grid, RATE, epsilon=0.1)
    for step in range(steps):
        pressure = first * (last / first) ** (step / max(1, steps - 1))
        smooth, near, weights = _smoothed(grid)
        gains = backpropagate(model, images * _enlarged(smooth, images), targets)
        gains = _enlarged_from((gains * images).sum(1, keepdim=True), grid)
        # Those of pressure * the mean of (smooth - wanted)^2.
        wanted = _largest(smooth.flatten(1), AREA).view_as(grid)
        slopes = (smooth - wanted).mul_(2 * pressure / wanted[0].numel())
        adam.step(_smoothed_from(slopes - gains, near, weights))
        grid.clamp_(0, 1)
    return _enlarged(smoothed(grid), images)[:, 0]


def smoothed(grid: Tensor) -> Tensor:
    """Max-convolution: at each cell the smooth maximum over neighbours of their value * kernel."""
    return _smoothed(grid)[0]


def _smoothed(grid: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The smooth maximum; what it is taken of, the neighbours of every cell; and their weights.

    The last two are [N, K, cells], the neighbours times SHARPNESS * kernel.
    """
    places, kernel = _neighbours(*grid.shape[2:], grid.dtype, grid.device)
    near = grid.flatten(1).index_select(1, places).view(len(grid), len(kernel), -1).mul_(kernel)
    weights = near.softmax(1)
    return (near * weights).sum(1).view_as(grid) / SHARPNESS, near, weights


def _smoothed_from(slopes: Tensor, near: Tensor, weights: Tensor) -> Tensor:
    """Slopes of the smooth maximum, brought back to the grid.

    As autograd computes it, in a third less time than with a graph of each step.
    """
    places, kernel = _neighbours(*slopes.shape[2:], slopes.dtype, slopes.device)
    upstream = slopes.view(len(near), 1, -1) / SHARPNESS
    by_weight = torch._softmax_backward_data(upstream * near, weights, 1, near.dtype)
    by_place = by_weight.add_(upstream * weights).mul_(kernel).flatten(1)
    grid = torch.zeros_like(slopes).flatten(1)
    return grid.scatter_add_(1, places.expand_as(by_place), by_place).view_as(slopes)


@cache
def _neighbours(
    height: int, width: int, dtype: torch.dtype, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Of every neighbour of every cell its place; and SHARPNESS * kernel: [K * cells] and [K, 1].

    Beyond the edge the grid goes on as it ends.
    """
    offsets = torch.arange(-RADIUS, RADIUS + 1)
    rows, columns = (
        (offsets[:, None] + torch.arange(side)).clamp(0, side - 1) for side in (height, width)
    )
    places = rows[:, None, :, None] * width + columns[:, None]
    distance = torch.hypot(offsets[:, None].float(), offsets.float()).view(-1, 1)
    kernel = SHARPNESS * torch.exp(-((distance - 1).clamp(min=0) ** 2) / 2)
    return sent(places.flatten(), device), sent(kernel.to(dtype), device)


def _enlarged(grid: Tensor, images: Tensor) -> Tensor:
    """To the size of the images, bilinearly; as products, which are faster than F.interpolate."""
    rows, columns = _spreads(grid, images)
    return rows @ grid @ columns.T


def _enlarged_from(slopes: Tensor, grid: Tensor) -> Tensor:
    """Slopes of what is enlarged, brought back to the grid."""
    rows, columns = _spreads(grid, slopes)
    return rows.T @ (slopes @ columns)


def _spreads(grid: Tensor, images: Tensor) -> list[Tensor]:
    sizes = zip(grid.shape[2:], images.shape[2:], strict=True)
    return [_spread(cells, side, grid.dtype, grid.device) for cells, side in sizes]


@cache
def _spread(cells: int, side: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The share of every cell in every pixel of a line: [side, cells]."""
    units = torch.eye(cells)[None, None]
    shares = F.interpolate(units, (side, cells), mode="bilinear", align_corners=False)[0, 0]
    return sent(shares.to(dtype), device)


def _largest(values: Tensor, share: float) -> Tensor:
    """One at a share of the values of each row, the largest, and zero elsewhere: [N, P].

    Of values that are alike the last come first.
    """
    order = values.argsort(dim=1, stable=True)
    others = round((1 - share) * values.shape[1])
    return torch.zeros_like(values).scatter_(1, order[:, others:], 1)
