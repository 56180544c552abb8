"""Images cut into a grid of equal cells, row by row."""

from __future__ import annotations

import torch
from torch import Tensor

from attrcheck.errors import AttrcheckError


class GridError(AttrcheckError):
    """A grid that does not cut images into equal cells."""


def cell_masks(grid: int, images: Tensor) -> Tensor:
    """Where each cell of images [N, C, H, W] is: [grid * grid, H, W] bool."""
    height, width = cell_size(grid, images)
    rows = torch.arange(images.shape[2], device=images.device) // height
    columns = torch.arange(images.shape[3], device=images.device) // width
    cells = rows[:, None] * grid + columns
    return cells == torch.arange(grid * grid, device=images.device)[:, None, None]


def cell_size(grid: int, images: Tensor) -> tuple[int, int]:
    """Height and width of a cell of images [N, C, H, W], which must all be equal."""
    height, width = images.shape[2:]
    if grid < 1 or height % grid or width % grid:
        raise GridError(
            f"a grid of {grid}x{grid} does not cut images of {height}x{width} into equal cells; "
            "choose a grid that divides both sides"
        )
    return height // grid, width // grid
