"""Semi-natural images: a known scene that says nothing, and a watermark that says the class."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from attrcheck.datasets.shapes import HELD_OUT, SIZE, TRAINING, generate

CLASSES = 10
BANDS = 4
"""Stripes that it takes to write 1 to 10 in binary."""
BAND = SIZE // BANDS
BOX = (slice(SIZE - 16, SIZE - 2), slice(2, 12))
"""Rows and columns of the black rectangle, in the lower left as published."""
FONT = (
    "111101101101111", "010110010010111", "111001111100111", "111001111001111",
    "101101111001001", "111100111001111", "111100111101111", "111001001001001",
    "111101111101111", "111101111001111",
)  # fmt: skip
"""Digits of 3 x 5 dots, row by row."""
DOT = 2
"""Pixels a side of a dot."""


@dataclass(frozen=True)
class Marked:
    """Images in [0, 1] with labels, and masks [N, H, W] of what was put in."""

    images: Tensor
    labels: Tensor
    masks: Tensor


def numbers(training: bool, count: int, seed: int) -> Marked:
    """The class as a white number in a black rectangle; all of the rectangle was put in."""
    images, labels = _scenes(training, count, seed)
    images[:, :, *BOX] = 0.0
    height, width = 5 * DOT, 3 * DOT
    top, left = BOX[0].start + 2, BOX[1].start + 2
    dots = torch.tensor([[int(dot) for dot in digit] for digit in FONT]).view(-1, 1, 5, 3)
    inks = F.interpolate(dots.float(), scale_factor=DOT)[labels]
    images[:, :, top : top + height, left : left + width] = inks
    masks = torch.zeros(count, SIZE, SIZE, dtype=torch.bool)
    masks[:, *BOX] = True
    return Marked(images, labels, masks)


def stripes(training: bool, count: int, seed: int) -> Marked:
    """The class plus one in binary, top to bottom: a white band for each bit that is set."""
    images, labels = _scenes(training, count, seed)
    bits = (labels[:, None] + 1) >> torch.arange(BANDS - 1, -1, -1) & 1
    masks = bits.bool().repeat_interleave(BAND, 1)[:, :, None].expand(-1, -1, SIZE)
    return Marked(images.masked_fill(masks[:, None], 1.0), labels, masks.contiguous())


def rect(maps: Tensor) -> Tensor:
    """A rectangle at the centre of gravity of what is positive in a map: right for `numbers`."""
    weights = maps.clamp(min=0)
    total = weights.sum((1, 2)).clamp(min=torch.finfo(maps.dtype).tiny)
    places = torch.arange(SIZE, device=maps.device, dtype=maps.dtype)
    inside = []
    for axis, extent in ((2, BOX[0]), (1, BOX[1])):
        centre = (weights.sum(axis) * places).sum(1) / total
        # Half of the true extent, as published.
        inside.append((places - centre[:, None]).abs() <= (extent.stop - extent.start) / 4)
    rows, columns = inside
    return (rows[:, :, None] & columns[:, None, :]).to(maps.dtype)


def pooling(maps: Tensor) -> Tensor:
    """The mean of what is positive in a map over each band of rows: right for `stripes`."""
    bands = F.avg_pool2d(maps.clamp(min=0)[:, None], (BAND, SIZE))[:, 0]
    return bands.repeat_interleave(BAND, 1).expand(-1, -1, SIZE)


def _scenes(training: bool, count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Scenes of the dataset `shapes`, with labels that have nothing to do with them."""
    images, _, _ = generate(TRAINING if training else HELD_OUT, count)
    generator = torch.Generator().manual_seed(seed)
    return images, torch.randint(CLASSES, (count,), generator=generator)
