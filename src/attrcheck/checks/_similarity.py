"""How alike two maps of the same image are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def rank_correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Mean over images of Spearman's correlation of the pixels' ranks, ties sharing the mean rank.

    In [-1, 1]; 0 where a map is constant, which agrees with nothing.
    """
    pairs = zip(one, other, strict=True)
    return float(np.mean([_correlation(_ranks(a), _ranks(b)) for a, b in pairs]))


def _ranks(values: NDArray[np.float32]) -> NDArray[np.float64]:
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[inverse.ravel()])


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size else 0.0
