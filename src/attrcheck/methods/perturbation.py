"""Occlusion and RISE: what the class loses, or keeps, when parts of the image are covered."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.methods import method
from attrcheck.tensors.batching import in_batches
from attrcheck.tensors.transfers import sent

WINDOW, STRIDE = 8, 16
"""The window has 1/8 of the image's side and moves by 1/16 of it, both rounded up."""
WINDOWS = 15**2
"""The most windows of this size and stride that any image has room for."""
MASKS, FEW_MASKS = 1000, 200
CELLS = 8
CPU = torch.device("cpu")
KEEP = 0.1
"""A mask is a coarse grid of CELLS x CELLS zeros and ones, each a one with probability KEEP."""

Masks = Callable[[slice], Tensor]
"""Some of an image's masks [K, H, W]: they are enlarged when their turn comes, and then dropped."""


@method(
    "occlusion",
    family="perturbation",
    passes=(WINDOWS + 1, 0),
    reference="Zeiler and Fergus 2013",
)
def occlusion(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The mean of f(x) - f(x without the window) over all windows that cover a pixel.

    What a window covers becomes zero; windows at the border end there.
    """
    images = images.detach()
    rows, columns = (sent(_windows(side), images) for side in images.shape[2:])
    count = len(rows) * len(columns)

    def logits(part: slice) -> Tensor:
        """Of the images with one window blanked each: all windows of an image, then the next."""
        place = torch.arange(part.start, part.stop, device=images.device)
        image, window = place // count, place % count
        cover = rows[window // len(columns)][:, :, None] * columns[window % len(columns)][:, None]
        with torch.no_grad():
            outputs: Tensor = model(images[image] * (1 - cover[:, None]))
        return outputs.gather(1, targets[image, None])[:, 0]

    with torch.no_grad():
        intact = model(images).gather(1, targets[:, None])
    left = torch.cat(list(in_batches(logits, len(images) * count, model, images)))
    drops = (intact - left.view(len(images), count)).view(-1, len(rows), len(columns))
    total: Tensor = rows.T @ drops @ columns
    return total / torch.outer(rows.sum(0), columns.sum(0))


def _windows(side: int) -> Tensor:
    """Which of `side` places each window covers, from end to end: [windows, side], zero or one."""
    size, stride = -(-side // WINDOW), -(-side // STRIDE)
    starts = torch.arange(0, side - size + stride, stride)[:, None]
    places = torch.arange(side)
    return ((places >= starts) & (places < starts + size)).float()


def random_masks(
    count: int, size: torch.Size, generator: torch.Generator, device: torch.device = CPU
) -> Masks:
    """Smooth masks in [0, 1]: coarse grids, bilinearly enlarged and shifted within one cell.

    Drawn on the CPU, and enlarged on the device.
    """
    height, width = size
    grids = (torch.rand(count, CELLS, CELLS, generator=generator) < KEEP).float()
    rows, columns = _enlargements(height), _enlargements(width)
    down = torch.randint(len(rows), (count,), generator=generator)
    right = torch.randint(len(columns), (count,), generator=generator)
    grids, rows, columns = (sent(part, device) for part in (grids, rows, columns))
    down, right = (sent(part, device) for part in (down, right))

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
        mask = masks(part).to(image.dtype)
        with torch.no_grad():
            logits = model(filling.lerp(image, mask[:, None]))
        chosen = logits.softmax(1).index_select(1, target.view(1))[:, 0]
        return torch.einsum("k,khw->hw", chosen, mask)

    parts = in_batches(weighed, count, model, image[None])
    return torch.stack(list(parts)).sum(0) / (count * KEEP)


def rise_maps(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    count: int,
    *,
    uniform: bool = False,
) -> Tensor:
    """The map of every image from its own masks; what they remove becomes zero, or U(-1, 1)."""
    maps = []
    for image, target, seed in zip(images.detach(), targets, seeds, strict=True):
        generator = torch.Generator().manual_seed(seed)
        masks = random_masks(count, image.shape[1:], generator, image.device)
        filling = torch.zeros_like(image)
        if uniform:
            filling = sent(2 * torch.rand(image.shape, generator=generator) - 1, image)
        maps.append(expected_class(model, image, target, masks, count, filling))
    return torch.stack(maps)


@method(
    "rise",
    family="perturbation",
    passes=(MASKS, 0),
    reference="Petsiuk et al. 2018",
)
def rise(model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]) -> Tensor:
    """E[p(target | x m) m] / E[m] over 1,000 random masks m; what they remove becomes zero."""
    return rise_maps(model, images, targets, seeds, MASKS)


@method(
    "rise_200",
    family="perturbation",
    passes=(FEW_MASKS, 0),
    reference="Petsiuk et al. 2018",
)
def rise_200(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """E[p(target | x m) m] / E[m] over 200 random masks m; what they remove becomes zero."""
    return rise_maps(model, images, targets, seeds, FEW_MASKS)


@method(
    "rise_uniform",
    family="perturbation",
    passes=(MASKS, 0),
    reference="Petsiuk et al. 2018",
)
def rise_uniform(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """As `rise`, but what masks remove becomes U(-1, 1), drawn once for all masks of an image."""
    return rise_maps(model, images, targets, seeds, MASKS, uniform=True)
