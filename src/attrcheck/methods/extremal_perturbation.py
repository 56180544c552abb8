"""Extremal perturbation: the region of given area that keeps the class best (Fong et al. 2019)."""

from __future__ import annotations

from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.methods import method
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
    grid = images.new_full((len(images), 1, *size), 0.5).requires_grad_()
    wanted = sent(_step_of(AREA, size[0] * size[1]), images)
    first, last = PRESSURE
    # Adam works element by element, so that images in one batch do not see each other; a large
    # epsilon keeps it from taking full steps along gradients that are rounding noise.
    optimiser = torch.optim.Adam([grid], lr=RATE, eps=0.1)
    for step in range(steps):
        pressure = first * (last / first) ** (step / max(1, steps - 1))
        with torch.enable_grad():
            smooth = smoothed(grid)
            lost = -model(images * _enlarged(smooth, images)).gather(1, targets[:, None])
        # The slope of pressure * mean((ranked - wanted)^2).
        ranked, order = smooth.detach().flatten(1).sort(dim=1, stable=True)
        slope = (ranked - wanted).mul_(2 * pressure / len(wanted))
        slope = torch.empty_like(slope).scatter_(1, order, slope).view_as(grid)
        slopes = [torch.ones_like(lost), slope]
        (grid.grad,) = torch.autograd.grad([lost, smooth], grid, slopes)
        optimiser.step()
        grid.detach().clamp_(0, 1)
    with torch.no_grad():
        return _enlarged(smoothed(grid), images)[:, 0]


def smoothed(grid: Tensor) -> Tensor:
    """Max-convolution: at each cell the smooth maximum over neighbours of their value * kernel."""
    places, kernel = _neighbours(*grid.shape[2:], grid.dtype, grid.device)
    near = grid.flatten(1).index_select(1, places)
    near = near.view(len(grid), len(kernel), -1) * kernel
    return (near * near.softmax(1)).sum(1).view_as(grid) / SHARPNESS


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
    rows, columns = (
        _spread(cells, side, grid.dtype, grid.device)
        for cells, side in zip(grid.shape[2:], images.shape[2:], strict=True)
    )
    return rows @ grid @ columns.T


@cache
def _spread(cells: int, side: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The share of every cell in every pixel of a line: [side, cells]."""
    units = torch.eye(cells)[None, None]
    shares = F.interpolate(units, (side, cells), mode="bilinear", align_corners=False)[0, 0]
    return sent(shares.to(dtype), device)


def _step_of(area: float, count: int) -> Tensor:
    """`count` sorted values of a mask of this area: zeros, then ones."""
    return (torch.arange(count) >= round((1 - area) * count)).float()
