"""Objects in photographs: an icon decides the class among other icons, and its mask is known.

Icons of Twemoji (CC BY 4.0) are turned, scaled and tinted, and pasted into crops of ten photographs
that are free: LICENCES.md, beside this file, names the author and licence of each. The right half
of every photograph is for the images that are held out, the left half is learnt from. Objects lie
away from the centre, so that a map which looks there gains nothing.

Each image is drawn from its own seed, whatever the number of images. Only IEEE additions,
multiplications, divisions, square roots, comparisons and floors are used, one element at a time,
and the result is quantised: all machines draw the same bytes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attrcheck.contracts import Dataset
from attrcheck.datasets import dataset
from attrcheck.datasets.drawing import Array, Dice, Mask, between, dice, kept_clear, length, turns
from attrcheck.datasets.shipped import arrays

Numbers = NDArray[np.int64]

INGREDIENTS = Path(__file__).with_suffix(".npz")
SHA256 = "2aaab83fe1d94cc9e3c5c10cc294694fb837faa0789976f0386f7718c94d8576"

ICONS = {
    "cat": ("1f408", "1f431", "1f42f"),
    "dog": ("1f415", "1f436", "1f429"),
    "bird": ("1f426", "1f989", "1f986"),
    "fish": ("1f41f", "1f420", "1f988"),
    "insect": ("1f41d", "1f41e", "1f98b"),
    "car": ("1f697", "1f695", "1f3ce"),
    "lorry": ("1f68c", "1f69a", "1f692"),
    "boat": ("26f5", "1f6a4", "1f6a2"),
    "house": ("1f3e0", "1f3e2", "1f3eb"),
    "tree": ("1f332", "1f333", "1f334"),
    "flower": ("1f337", "1f33b", "1f338"),
    "fruit": ("1f34e", "1f34b", "1f353"),
    # Of no class: what stands around.
    "": (
        "1fa91", "1f511", "1f3b8", "1f4d5", "2602", "1f45f",
        "1f3a9", "1f381", "26bd", "1f4f7", "23f0", "2615",
    ),
}  # fmt: skip
"""Twemoji's names of the icons of each class, in the order in which they are stored."""
PHOTOGRAPHS = (
    "astronaut", "brick", "camera", "chelsea", "china", "coffee", "flower", "grass", "gravel",
    "rocket",
)  # fmt: skip
CLASSES = tuple(filter(None, ICONS))
PER_CLASS = 3

SIZE = 64
SIDE = 36
"""Of a stored icon, in pixels."""
HELD_OUT, TRAINING = 0, 1
HELD_OUT_IMAGES = 960
TRAINING_IMAGES = 12000

# What an image is made of; lengths in pixels, colours in [0, 1].
OBJECTS = 3
CANDIDATES = 8
OUTWARD = 4
"""Candidates of which the object that decides takes the one farthest from the centre."""
RADIUS = (11.0, 17.0)
EDGE = 0.6
"""Radii that a centre keeps from the border: some objects are cut off a little."""
TURN = 0.2
CROP = (64.0, 96.0)
LIGHT = (0.6, 1.1)
TINT = (0.8, 1.1)
NOISE = 0.04

PIXELS = np.arange(SIZE, dtype=np.float32) + 0.5
BLOCK = 48

# Mean and standard deviation of the training split.
MEAN = (0.4582, 0.3621, 0.3403)
STD = (0.2709, 0.2263, 0.2232)


@dataset("objects", offers=("masks", "training"), default=False)
def objects() -> Dataset:
    """Held-out images with the mask of the object that decides each one's class."""
    images, labels, masks = generate(HELD_OUT, HELD_OUT_IMAGES)
    return Dataset(
        name="objects",
        images=images,
        labels=labels,
        classes=len(CLASSES),
        mean=MEAN,
        std=STD,
        ids=tuple(f"objects/{index}" for index in range(HELD_OUT_IMAGES)),
        masks=masks,
        training=training,
        class_names=CLASSES,
    )


def training() -> tuple[Tensor, Tensor]:
    """Images in [0, 1] and labels of the training split, drawn when asked for."""
    images, labels, _ = generate(TRAINING, TRAINING_IMAGES)
    return images, labels


def generate(split: int, count: int) -> tuple[Tensor, Tensor, Tensor]:
    """The first `count` images of a split, their labels and their masks."""
    blocks = [_draw(split, range(i, min(i + BLOCK, count))) for i in range(0, count, BLOCK)]
    pixels, masks = (np.concatenate(part) for part in zip(*blocks, strict=True))
    labels = torch.arange(count) % len(CLASSES)
    return torch.from_numpy(pixels / np.float32(255)), labels, torch.from_numpy(masks)


class Pasted(NamedTuple):
    """An icon for each of N images: which, how large, where, how turned, in which light."""

    kinds: Numbers
    radii: Array
    places: Array
    cos: Array
    sin: Array
    tints: Array


def _draw(split: int, indices: range) -> tuple[NDArray[np.uint8], Mask]:
    """Pixels and masks of some images of a split."""
    draw = dice(split, indices)
    canvas = _ground(split, draw)
    first = len(CLASSES) * PER_CLASS
    kinds = np.floor(draw(OBJECTS) * (len(_icons()) - first)).astype(np.int64) + first
    # The object that decides comes last, so nothing hides it.
    labels = np.array(indices) % len(CLASSES)
    kinds[:, -1] = labels * PER_CLASS + np.floor(draw(1)[:, 0] * PER_CLASS).astype(np.int64)
    radii = between(RADIUS, draw(OBJECTS))
    places, (cos, sin) = _places(draw, radii), turns(draw, OBJECTS, TURN)
    tints = between(TINT, draw(OBJECTS, 3))
    for number in range(OBJECTS):
        at = np.s_[:, number]
        icon = Pasted(kinds[at], radii[at], places[at], cos[at], sin[at], tints[at])
        mask = _paste(canvas, icon)
    canvas += (draw(3, SIZE, SIZE) - 0.5) * (2 * NOISE)
    return np.floor(np.clip(canvas, 0, 1) * 255 + 0.5).astype(np.uint8), mask


def _paste(canvas: Array, icon: Pasted) -> Mask:
    """Draw an icon into each image in place; returns the pixels that it was drawn on.

    Those are the pixels that it covers by half at least: none of the others changes.
    """
    scale, cos, sin = (
        part[:, None, None] for part in ((SIDE / 2) / icon.radii, icon.cos, icon.sin)
    )
    x = PIXELS[None, None, :] - icon.places[:, 0, None, None]
    y = PIXELS[None, :, None] - icon.places[:, 1, None, None]
    column = (x * cos + y * sin) * scale + (SIDE / 2 - 0.5)
    row = (y * cos - x * sin) * scale + (SIDE / 2 - 0.5)
    near: Mask = (column >= 0) & (column < SIDE - 1) & (row >= 0) & (row < SIDE - 1)
    colours = _between_pixels(icon.kinds[np.nonzero(near)[0]], row[near], column[near])
    drawn = colours[:, 3] >= 0.5
    near[near], colours = drawn, colours[drawn]
    image, y_at, x_at = np.nonzero(near)
    under = canvas[image, :, y_at, x_at] * (1 - colours[:, 3:])
    canvas[image, :, y_at, x_at] = under + colours[:, :3] * icon.tints[image]
    return near


def _between_pixels(kinds: Numbers, rows: Array, columns: Array) -> Array:
    """Colour and alpha [points, 4] of icons at places between their pixels."""
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down, right = (
        (at - whole.astype(np.float32))[:, None] for at, whole in ((rows, top), (columns, left))
    )
    icons = _icons()
    upper = icons[kinds, top, left] * (1 - right) + icons[kinds, top, left + 1] * right
    lower = icons[kinds, top + 1, left] * (1 - right) + icons[kinds, top + 1, left + 1] * right
    mixed: Array = upper * (1 - down) + lower * down
    return mixed


def _ground(split: int, draw: Dice) -> Array:
    """Crops of photographs [N, 3, H, W], from the half that belongs to the split."""
    halves = _halves(split)
    chosen = np.floor(draw(1)[:, 0] * len(halves)).astype(np.int64)
    side = between(CROP, draw(1)[:, 0])
    corner, mirrored, light = draw(2), draw(1)[:, 0] < 0.5, between(LIGHT, draw(3))
    grounds = np.empty((len(chosen), 3, SIZE, SIZE), np.float32)
    for at, which in enumerate(chosen):
        half = halves[which]
        step = (side[at] - 1) / (SIZE - 1)
        rows, columns = (
            start * (length - side[at]) + (PIXELS - 0.5) * step
            for start, length in zip(corner[at], half.shape[:2], strict=True)
        )
        crop = _lines(_lines(half, rows).swapaxes(0, 1), columns)
        grounds[at] = (crop[::-1] if mirrored[at] else crop).transpose(2, 1, 0)
    return grounds * light[:, :, None, None]


def _lines(picture: Array, places: Array) -> Array:
    """Rows of a picture at places between its rows."""
    low = np.minimum(np.floor(places).astype(np.int64), len(picture) - 2)
    part = (places - low.astype(np.float32))[:, None, None]
    lines: Array = picture[low] * (1 - part) + picture[low + 1] * part
    return lines


def _places(draw: Dice, radii: Array) -> Array:
    """Centres [N, objects, 2]: the last keeps away from the middle, the others from each other."""
    margins = EDGE * radii[:, :, None, None]
    candidates = margins + draw(OBJECTS, CANDIDATES, 2) * (SIZE - 2 * margins)
    outward = length(candidates[:, -1, :OUTWARD] - SIZE / 2).argmax(axis=1)
    return kept_clear(candidates, radii, candidates[np.arange(len(radii)), -1, outward])


@cache
def _icons() -> Array:
    """All icons [n, SIDE, SIDE, 4] in [0, 1], colours multiplied by alpha."""
    icons: Array = arrays(INGREDIENTS, SHA256)["icons"] / np.float32(255)
    icons[..., :3] *= icons[..., 3:]
    return icons


@cache
def _halves(split: int) -> list[Array]:
    """The half of every photograph, [H, W, 3] in [0, 1], that belongs to a split."""
    stored = arrays(INGREDIENTS, SHA256)
    halves: list[Array] = []
    for name in PHOTOGRAPHS:
        picture = stored[name] / np.float32(255)
        middle = picture.shape[1] // 2
        halves.append(picture[:, :middle] if split == TRAINING else picture[:, middle:])
    return halves
