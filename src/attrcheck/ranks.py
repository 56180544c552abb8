"""Ranks and their correlation, row by row, with ties that floats would break at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def average_ranks(values: ArrayLike, tolerance: float = 0.0) -> NDArray[np.float64]:
    """Ranks 1 .. P in each row of [N, P]; ties share the mean of their ranks.

    Neighbours in order that differ by at most `tolerance` times the row's largest magnitude tie.

    >>> average_ranks([[0.1, 0.5, 0.1]]).tolist()
    [[1.5, 3.0, 1.5]]
    """
    rows = np.asarray(values, dtype=np.float64)
    n, size = rows.shape
    order = rows.argsort(axis=1, kind="stable")
    rising = np.take_along_axis(rows, order, axis=1)
    within = tolerance * np.abs(rows).max(axis=1, keepdims=True, initial=0.0)
    apart = np.diff(rising, axis=1, prepend=-np.inf) > within
    groups = apart.cumsum(axis=1) - 1 + size * np.arange(n)[:, None]
    totals = np.bincount(groups.ravel(), np.tile(np.arange(1.0, size + 1), n), minlength=n * size)
    members = np.bincount(groups.ravel(), minlength=n * size)
    ranks = np.empty_like(rows)
    np.put_along_axis(ranks, order, (totals / np.maximum(members, 1))[groups], axis=1)
    return ranks


def spearman(one: ArrayLike, other: ArrayLike, tolerance: float = 0.0) -> NDArray[np.float64]:
    """Spearman's correlation of two [N, P], row by row, in [-1, 1].

    NaN where a row is constant or not finite. `tolerance` is that of the first.
    """
    first, second = (np.asarray(rows, dtype=np.float64) for rows in (one, other))
    usable = (np.isfinite(first) & np.isfinite(second)).all(axis=1, keepdims=True)
    a = average_ranks(np.where(usable, first, 0.0), tolerance)
    b = average_ranks(np.where(usable, second, 0.0))
    return _correlation(a, b)


def pearson(one: ArrayLike, other: ArrayLike, tolerance: float = 0.0) -> NDArray[np.float64]:
    """Pearson's correlation of two [N, P], row by row, in [-1, 1].

    NaN where a row is constant or not finite. A row of the first is constant if its values are
    within `tolerance` times its largest magnitude of each other.

    >>> pearson([[0.0, 1.0, 2.0]], [[1.0, 2.0, 6.0]]).round(3).tolist()
    [0.945]
    """
    first, second = (np.asarray(rows, dtype=np.float64) for rows in (one, other))
    within = tolerance * np.abs(first).max(axis=1, initial=0.0)
    spread = first.max(axis=1) - first.min(axis=1)
    usable = (np.isfinite(first) & np.isfinite(second)).all(axis=1) & (spread > within)
    a, b = (np.where(usable[:, None], rows, 0.0) for rows in (first, second))
    return _correlation(a, b)


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the rows of a and b; NaN where one is constant."""
    a = a - a.mean(axis=1, keepdims=True)
    b = b - b.mean(axis=1, keepdims=True)
    size = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    correlation = np.full(len(a), np.nan)
    np.divide((a * b).sum(axis=1), size, out=correlation, where=size > 0)
    return correlation.clip(-1, 1)


def defined(value: float) -> float | None:
    """A number as reports hold it: None where it is not finite."""
    return float(value) if np.isfinite(value) else None
