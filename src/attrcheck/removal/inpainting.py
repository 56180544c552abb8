"""Paint over removed pixels from their border inwards: the fast marching method (Telea 2004).

One pixel after another, but one of each image at a time: a hundredth of a second for each of 20
images of 32 pixels of which half are gone, ten times that for a single one.
"""

from __future__ import annotations

import heapq
from math import sqrt

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attrcheck.removal import removal

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Places = NDArray[np.int64]
RADIUS = 3
"""Pixels around one from which it is painted."""
FAR = 1e6
OFFSETS = np.array(
    [
        (down, right)
        for down in range(-RADIUS, RADIUS + 1)
        for right in range(-RADIUS, RADIUS + 1)
        if 0 < down**2 + right**2 <= RADIUS**2
    ]
)
LENGTHS = np.sqrt((OFFSETS**2).sum(1))
MARGIN = RADIUS + 1
"""Pixels around an image that are not known."""
SIDES = ((MARGIN, MARGIN), (MARGIN, MARGIN))
STEP = np.dtype([("at", np.int64), ("when", np.float64)])
"""A place in an image with its margin, row behind row, and the distance from what is kept."""


@removal("inpaint")
def inpaint(images: Tensor, keep: Tensor) -> Tensor:
    """Each removed pixel becomes a mean of those that are known around it, continued linearly.

    Nearer pixels weigh more, and those along the normal and at the level of the border. Pixels are
    painted in the order of their distance from what is kept, and within its range. An image of
    which nothing is kept becomes zero, the dataset's mean once images are normalised.
    """
    kept = keep.bool()
    pixels = images.detach().cpu().double().numpy()
    painted = torch.from_numpy(_painted(pixels, kept.cpu().numpy())).to(images)
    return torch.where(kept[:, None], images, painted)


def _painted(images: Floats, kept: Flags) -> Floats:
    """Images [N, C, H, W] without holes: of all the first removed pixel, then the second, ..."""
    routes = [_march(flags) for flags in kept]
    lengths = np.array([len(route) for route in routes])
    order = np.argsort(-lengths, kind="stable")  # so that those that are not done come first
    steps = np.zeros((int(lengths.max(initial=0)), len(images)), dtype=STEP)
    for column, index in enumerate(order):
        steps[: lengths[index], column] = routes[index]

    # Places of an image in one row, behind each other; colours of a place last.
    known = np.pad(kept[order], ((0, 0), *SIDES)).reshape(len(images), -1)
    painted = np.pad(images[order] * kept[order, None], ((0, 0), (0, 0), *SIDES))
    shape = painted.shape
    painted = np.ascontiguousarray(painted.reshape(*shape[:2], -1).transpose(0, 2, 1))
    distance = np.where(known, 0.0, FAR)
    lowest = np.where(known[..., None], painted, np.inf).min(1)
    highest = np.where(known[..., None], painted, -np.inf).max(1)
    for step, places in enumerate(steps):
        left = slice(0, int((lengths > step).sum()))
        at, rows = places["at"][left], np.arange(left.stop)
        distance[rows, at] = places["when"][left]
        colours = _colours(painted[left], known[left], distance[left], at, shape[3])
        # Noise would go on and on.
        painted[rows, at] = np.clip(colours, lowest[left], highest[left])
        known[rows, at] = True
    result = np.empty_like(images)
    result[order] = painted.transpose(0, 2, 1).reshape(shape)[..., MARGIN:-MARGIN, MARGIN:-MARGIN]
    return result


def _march(kept: Flags) -> list[tuple[int, float]]:
    """The removed pixels in the order of their distance from what is kept, with that distance."""
    known = np.pad(kept, SIDES)
    width = known.shape[1]
    left = np.pad(~kept, SIDES).ravel().tolist()
    distance = np.where(known, 0.0, FAR).ravel().tolist()
    around = (-width, width, -1, 1)
    border = [
        (0.0, at)
        for at in np.flatnonzero(known).tolist()
        if any(left[at + side] for side in around)
    ]
    heapq.heapify(border)
    route = []
    while border:
        _, centre = heapq.heappop(border)
        for side in around:
            at = centre + side
            if left[at]:
                left[at] = False
                distance[at] = _arrival(distance, at, width)
                route.append((at, distance[at]))
                heapq.heappush(border, (distance[at], at))
    return route


def _arrival(distance: list[float], at: int, width: int) -> float:
    """When a front of speed one arrives, coming from the nearer row and the nearer column."""
    across = min(distance[at - width], distance[at + width])
    along = min(distance[at - 1], distance[at + 1])
    apart = abs(across - along)
    if apart >= 1:
        return min(across, along) + 1
    return (across + along + sqrt(2 - apart**2)) / 2


def _colours(painted: Floats, known: Flags, distance: Floats, at: Places, width: int) -> Floats:
    """The colours [N, C] that the known pixels around give one pixel of each image."""
    rows = np.arange(len(at))[:, None]
    near = at[:, None] + (OFFSETS[:, 0] * width + OFFSETS[:, 1])
    down, right = _slope(distance[..., None], distance < FAR, rows, at[:, None], width)
    along = np.abs(OFFSETS[:, 0] * down[..., 0] + OFFSETS[:, 1] * right[..., 0]) / LENGTHS
    level = 1 / (1 + np.abs(distance[rows, near] - distance[rows, at[:, None]]))
    weights = np.maximum(along, 1e-6) * level / LENGTHS**2 * known[rows, near]
    down, right = _slope(painted, known, rows, near, width)
    continued = painted[rows, near] - down * OFFSETS[:, :1] - right * OFFSETS[:, 1:]
    return np.asarray((continued * weights[..., None]).sum(1) / weights.sum(1, keepdims=True))


def _slope(
    values: Floats, known: Flags, rows: Places, at: Places, width: int
) -> tuple[Floats, Floats]:
    """Slopes [N, places, C] down and to the right, between known neighbours; zero without any."""

    def along(step: int) -> Floats:
        after, before = known[rows, at + step], known[rows, at - step]
        here = values[rows, at]
        ahead = np.where(after[..., None], values[rows, at + step], here)
        behind = np.where(before[..., None], values[rows, at - step], here)
        return np.asarray((ahead - behind) / np.maximum(after.astype(int) + before, 1)[..., None])

    return along(width), along(1)
