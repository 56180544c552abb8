"""What drawn datasets have in common: seeded draws per image, and objects that keep clear.

Only IEEE operations, one element at a time, and uniform draws are used, which all machines agree
on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Dice = Callable[..., Array]

SEED = 0


def dice(split: int, indices: range) -> Dice:
    """A function of a shape: uniform draws in [0, 1) of that shape for each image of a split."""
    rngs = [np.random.default_rng((SEED, split, index)) for index in indices]
    return lambda *shape: np.stack([rng.random(shape, np.float32) for rng in rngs])


def between(bounds: tuple[float, float], draws: Array) -> Array:
    """Draws in [0, 1) brought to other bounds."""
    return bounds[0] + (bounds[1] - bounds[0]) * draws


def turns(draw: Dice, count: int, most: float) -> tuple[Array, Array]:
    """Cosine and sine of random angles, by the rational half-angle formula.

    most: the tangent of half the largest angle.
    """
    t = (draw(count) * 2 - 1) * most
    return (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)


def length(vectors: Array) -> Array:
    """Of vectors [..., 2]."""
    x, y = vectors[..., 0], vectors[..., 1]
    return np.sqrt(x * x + y * y)


def kept_clear(candidates: Array, radii: Array, last: Array) -> Array:
    """Centres [N, objects, 2] out of candidates [N, objects, K, 2], where the last is given.

    From the last to the first, each takes the candidate farthest from the objects placed before.
    """
    places = candidates[:, :, 0].copy()
    places[:, -1] = last
    images = np.arange(len(radii))
    for number in range(places.shape[1] - 2, -1, -1):
        away = candidates[:, number, :, None] - places[:, None, number + 1 :]
        gaps = length(away) - radii[:, None, number + 1 :]
        places[:, number] = candidates[images, number, gaps.min(axis=2).argmax(axis=1)]
    return places
