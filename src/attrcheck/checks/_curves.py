"""How far apart two curves are."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Curve: TypeAlias = tuple[Sequence[float], Sequence[float]]
"""Places and heights of the points that straight lines join, in order."""
Points = NDArray[np.float64]

BETWEEN = 50
"""Points that stand for each line, where distances are looked for."""


def hausdorff(one: Curve, other: Curve) -> float:
    """The largest distance from a point of either curve to the nearest point of the other."""
    return max(_farthest(one, other), _farthest(other, one))


def least_apart(curves: Sequence[Curve]) -> float:
    """The smallest distance between any two of the curves."""
    return min(hausdorff(one, other) for one, other in combinations(curves, 2))


def _farthest(one: Curve, other: Curve) -> float:
    """From the points along one curve to the lines of the other, which are met exactly."""
    points, corners = _along(_points(one)), _points(other)
    starts, ways = corners[:-1], np.diff(corners, axis=0)
    if not len(ways):
        starts, ways = corners, np.zeros_like(corners)
    lengths = (ways**2).sum(1)
    away = points[:, None] - starts
    with np.errstate(invalid="ignore"):
        share = np.nan_to_num((away * ways).sum(2) / lengths).clip(0, 1)
    gaps = away - share[:, :, None] * ways
    return float(np.sqrt((gaps**2).sum(2)).min(1).max())


def _along(corners: Points) -> Points:
    """The corners and what lies between them."""
    if len(corners) == 1:
        return corners
    shares = np.linspace(0, 1, BETWEEN, endpoint=False)[:, None]
    lines = corners[:-1, None] + shares * np.diff(corners, axis=0)[:, None]
    return np.concatenate([lines.reshape(-1, 2), corners[-1:]])


def _points(curve: Curve) -> Points:
    """[points, 2], those left out that have no height."""
    points = np.array(curve, dtype=np.float64).T
    return points[np.isfinite(points).all(axis=1)]
