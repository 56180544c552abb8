"""Synthetic shapes: one object decides the class among distractors, and its mask is known.

Each image is drawn from its own seed, whatever the number of images. Only IEEE additions,
multiplications, divisions, square roots, comparisons and floors are used, one element at a time,
and the result is quantised: all machines draw the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attrcheck.contracts import Dataset
from attrcheck.datasets import dataset
from attrcheck.datasets.drawing import Array, Dice, Mask, between, dice, kept_clear, turns

Field = Callable[[Array, Array], Array]

SIZE = 32
HELD_OUT, TRAINING = 0, 1
HELD_OUT_IMAGES = 1000
TRAINING_IMAGES = 10000

# What an image is made of; lengths in pixels, colours in [0, 1].
OBJECTS = 3
CANDIDATES = 8
RADIUS = (5.0, 7.5)
TURN = 0.4
GROUND = (0.15, 0.5)
CONTRAST = (0.08, 0.5)
TINT = (0.4, 1.0)
PERIOD = (4.0, 12.0)
TEXTURE = 0.16
NOISE = 0.1

PIXELS = np.arange(SIZE, dtype=np.float32) + 0.5
BLOCK = 50

# Mean and standard deviation of the training split.
MEAN = (0.3655, 0.3635, 0.3638)
STD = (0.1518, 0.152, 0.1513)

# Signed distance to the edge of each shape of radius one around the origin: negative is inside.


def _disc(x: Array, y: Array) -> Array:
    return _length(x, y) - 0.9


def _square(x: Array, y: Array) -> Array:
    return _box(x, y, 0.78, 0.78)


def _triangle(x: Array, y: Array) -> Array:
    sides = np.abs(x) * 0.866 + y * 0.5
    return np.maximum(sides, -y) - 0.52


def _cross(x: Array, y: Array) -> Array:
    return np.minimum(_box(x, y, 1.0, 0.32), _box(x, y, 0.32, 1.0))


def _ring(x: Array, y: Array) -> Array:
    edge: Array = np.abs(_length(x, y) - 0.72) - 0.25
    return edge


def _crescent(x: Array, y: Array) -> Array:
    edge: Array = np.maximum(_length(x, y) - 1, 0.8 - _length(x - 0.5, y))
    return edge


def _star(x: Array, y: Array) -> Array:
    return np.minimum(_triangle(x, y), _triangle(x, -y))


def _hourglass(x: Array, y: Array) -> Array:
    sides = (np.abs(x) - np.abs(y) * 0.9) * 0.74 - 0.08
    return np.maximum(sides, np.abs(y) - 0.85)


def _bar(x: Array, y: Array) -> Array:
    return _box(x, y, 1.0, 0.3)


def _ellipse(x: Array, y: Array) -> Array:
    return (_length(x, y * 1.9) - 1) * 0.6


def _corner(x: Array, y: Array) -> Array:
    foot = _box(x, y - 0.5, 0.8, 0.3)
    return np.minimum(foot, _box(x + 0.5, y, 0.3, 0.8))


def _half(x: Array, y: Array) -> Array:
    below = y + 0.45
    edge: Array = np.maximum(_length(x, below) - 1, -below)
    return edge


def _length(x: Array, y: Array) -> Array:
    return np.sqrt(x * x + y * y)


def _box(x: Array, y: Array, half_width: float, half_height: float) -> Array:
    return np.maximum(np.abs(x) - half_width, np.abs(y) - half_height)


CLASSES: tuple[Field, ...] = (
    _disc, _square, _triangle, _cross, _ring, _crescent, _star, _hourglass,
)  # fmt: skip
DISTRACTORS: tuple[Field, ...] = (_bar, _ellipse, _corner, _half)


@dataset("shapes", offers=("masks", "training"))
def shapes() -> Dataset:
    """A thousand held-out images with the mask of the object that decides each one's class."""
    images, labels, masks = generate(HELD_OUT, HELD_OUT_IMAGES)
    return Dataset(
        name="shapes",
        images=images,
        labels=labels,
        classes=len(CLASSES),
        mean=MEAN,
        std=STD,
        ids=tuple(f"shapes/{index}" for index in range(HELD_OUT_IMAGES)),
        masks=masks,
        training=training,
    )


def training() -> tuple[Tensor, Tensor]:
    """Images in [0, 1] and labels of the training split, drawn when asked for."""
    images, labels, _ = generate(TRAINING, TRAINING_IMAGES)
    return images, labels


def generate(split: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The first `count` images of a split, their labels and their masks."""
    # Small blocks stay in the cache.
    blocks = [_draw(split, range(i, min(i + BLOCK, count))) for i in range(0, count, BLOCK)]
    pixels, labels, masks = (np.concatenate(part) for part in zip(*blocks, strict=True))
    images = pixels / np.float32(255)
    return torch.from_numpy(images), torch.from_numpy(labels), torch.from_numpy(masks)


def _draw(split: int, indices: range) -> tuple[NDArray[np.uint8], NDArray[np.int64], Mask]:
    """Pixels, labels and masks of some images of a split."""
    draw = dice(split, indices)
    labels = np.floor(draw(1)[:, 0] * len(CLASSES)).astype(np.int64)
    kinds = np.floor(draw(OBJECTS) * len(DISTRACTORS)).astype(np.int64) + len(CLASSES)
    # The object that decides comes last, so nothing hides it.
    kinds[:, -1] = labels
    radii = between(RADIUS, draw(OBJECTS))
    cover = _cover(kinds, radii, _places(draw, radii), turns(draw, OBJECTS, TURN))
    ground = between(GROUND, draw(3))
    inks = ground[:, None] + between(CONTRAST, draw(OBJECTS, 1)) * between(TINT, draw(OBJECTS, 3))
    canvas = ground[:, :, None, None] + _texture(draw)
    for number in range(OBJECTS):
        canvas += cover[:, number, None] * (inks[:, number, :, None, None] - canvas)
    canvas += (draw(3, SIZE, SIZE) - 0.5) * (2 * NOISE)
    pixels = np.floor(np.clip(canvas, 0, 1) * 255 + 0.5).astype(np.uint8)
    return pixels, labels, cover[:, -1] >= 0.5


def _places(draw: Dice, radii: Array) -> Array:
    """Centres [N, objects, 2] inside the image: the last is free, the others keep clear of it."""
    candidates = draw(OBJECTS, CANDIDATES, 2)
    candidates = radii[:, :, None, None] + candidates * (SIZE - 2 * radii[:, :, None, None])
    return kept_clear(candidates, radii, candidates[:, -1, 0])


def _cover(
    kinds: NDArray[np.int64], radii: Array, places: Array, angles: tuple[Array, Array]
) -> Array:
    """How much of every pixel each object covers, [N, objects, H, W], with soft edges."""
    cover = np.empty((*kinds.shape, SIZE, SIZE), np.float32)
    for kind, field in enumerate(CLASSES + DISTRACTORS):
        chosen = np.nonzero(kinds == kind)
        radius, cos, sin = (part[chosen][:, None, None] for part in (radii, *angles))
        x = (PIXELS[None, None, :] - places[chosen][:, 0, None, None]) / radius
        y = (PIXELS[None, :, None] - places[chosen][:, 1, None, None]) / radius
        distance = field(x * cos + y * sin, y * cos - x * sin) * radius
        cover[chosen] = np.clip(0.5 - distance, 0, 1)
    return cover


def _texture(draw: Dice) -> Array:
    """Stripes and two scales of smooth noise, [N, 3, H, W], around zero."""
    cos, sin = (part[:, :, None] for part in turns(draw, 1, TURN))
    period = between(PERIOD, draw(1))[:, :, None]
    phase = (PIXELS * cos + PIXELS[:, None] * sin) / period + draw(1)[:, :, None]
    stripes = np.abs(phase - np.floor(phase) - 0.5) * 2 - 0.5
    tint = (draw(3) * 2 - 1)[:, :, None, None]
    noise = _smooth(draw(3, 5, 5) - 0.5) + _smooth(draw(3, 9, 9) - 0.5)
    texture: Array = (stripes[:, None] * tint + noise) * TEXTURE
    return texture


def _smooth(lattice: Array) -> Array:
    """A lattice [N, C, K, K] enlarged bilinearly to the size of an image."""
    cells = lattice.shape[-1] - 1
    at = PIXELS * (cells / SIZE)
    low = np.floor(at).astype(np.int64)
    part = at - low.astype(np.float32)
    rows = lattice[:, :, low] * (1 - part[:, None]) + lattice[:, :, low + 1] * part[:, None]
    fine: Array = rows[..., low] * (1 - part) + rows[..., low + 1] * part
    return fine
