"""RISE: how much of the class is left under random masks (Petsiuk et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.tensors.batching import in_batches

MASKS = 1000
CELLS = 8
KEEP = 0.1
"""A mask is a coarse grid of CELLS x CELLS zeros and ones, each a one with probability KEEP."""

Masks = Callable[[slice], Tensor]
"""Some of an image's masks [K, H, W]: they are enlarged when their turn comes, and then dropped."""


def random_masks(count: int, size: torch.Size, generator: torch.Generator) -> Masks:
    """Smooth masks in [0, 1]: coarse grids, bilinearly enlarged and shifted within one cell."""
    height, width = size
    grids = (torch.rand(count, CELLS, CELLS, generator=generator) < KEEP).float()
    rows, columns = _enlargements(height), _enlargements(width)
    down = torch.randint(len(rows), (count,), generator=generator)
    right = torch.randint(len(columns), (count,), generator=generator)

    def masks(part: slice) -> Tensor:
        return rows[down[part]].mT @ grids[part] @ columns[right[part]]

    return masks


def _enlargements(side: int) -> Tensor:
    """Matrices [shifts, CELLS, side] that stretch cells over one cell more than an image needs,
    and cut out `side` pixels, one for each shift."""
    cell = -(-side // CELLS)
    units = torch.eye(CELLS)[:, None]
    large = F.interpolate(units, (CELLS + 1) * cell, mode="linear", align_corners=False)[:, 0]
    return torch.stack([large[:, shift : shift + side] for shift in range(cell)])


def expected_class(
    model: nn.Module, image: Tensor, target: Tensor, masks: Masks, count: int, filling: Tensor
) -> Tensor:
    """Sum over masks m of p(target | x m + filling (1 - m)) * m, over count * KEEP: [H, W]."""

    def weighed(part: slice) -> Tensor:
        mask = masks(part).to(image)
        with torch.no_grad():
            logits = model(filling.lerp(image, mask[:, None]))
        return torch.einsum("k,khw->hw", logits.softmax(1)[:, target], mask)

    parts = in_batches(weighed, count, model, image[None])
    return torch.stack(list(parts)).sum(0) / (count * KEEP)


def rise_maps(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    count: int = MASKS,
    *,
    uniform: bool = False,
) -> Tensor:
    """The map of every image from its own masks; what they remove becomes zero, or U(-1, 1)."""
    maps = []
    for image, target, seed in zip(images.detach(), targets, seeds, strict=True):
        generator = torch.Generator().manual_seed(seed)
        masks = random_masks(count, image.shape[1:], generator)
        filling = torch.zeros_like(image)
        if uniform:
            filling = (2 * torch.rand(image.shape, generator=generator) - 1).to(image)
        maps.append(expected_class(model, image, target, masks, count, filling))
    return torch.stack(maps)
