"""How alike two maps of the same image are."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from attrcheck.ranks import spearman

Maps = NDArray[np.float32]
SAME = 0.99
"""Rank correlation above which two maps are the same for all purposes."""
WINDOW = 7
STEADY = (0.01**2, 0.03**2)
"""What keeps a quotient of SSIM steady where means, or variances, vanish (Wang et al. 2004)."""


def rank_correlation(one: Maps, other: Maps) -> float:
    """Mean over images of Spearman's correlation of the pixels, in [-1, 1].

    Two constant maps are as alike as can be: 1. One alone agrees with nothing: 0.
    """
    a, b = (maps.reshape(len(maps), -1) for maps in (one, other))
    constant = [(maps == maps[:, :1]).all(axis=1) for maps in (a, b)]
    correlations = np.where(constant[0] & constant[1], 1.0, np.nan_to_num(spearman(a, b)))
    return float(correlations.mean())


def ssim(one: Maps, other: Maps) -> float:
    """Mean structural similarity of maps [N, H, W], each brought to [0, 1]; 1 if they are equal.

    (2 ab + c) / (a^2 + b^2 + c) of the means times the same of covariance and variances, in every
    window of 7x7, or of the whole map where that is smaller.
    """
    a, b = (_windows(_min_max(maps)) for maps in (one, other))
    mean_a, mean_b = a.mean((3, 4)), b.mean((3, 4))
    a, b = a - mean_a[..., None, None], b - mean_b[..., None, None]
    for_means, for_spreads = STEADY
    means = (2 * mean_a * mean_b + for_means) / (mean_a**2 + mean_b**2 + for_means)
    spreads = (a * a).mean((3, 4)) + (b * b).mean((3, 4)) + for_spreads
    return float((means * (2 * (a * b).mean((3, 4)) + for_spreads) / spreads).mean())


def complexity(maps: Maps, bins: int = 100) -> NDArray[np.float64]:
    """The entropy of the histogram of each map, in equal bins from its minimum to its maximum.

    In nats: zero for a constant map, at most log(bins).
    """
    counts = np.stack([np.histogram(values, bins)[0] for values in maps])
    shares = counts / counts.sum(1, keepdims=True)
    return np.asarray(-(shares * np.log(np.where(shares > 0, shares, 1))).sum(1))


def _min_max(maps: Maps) -> NDArray[np.float64]:
    """Each map from its minimum to its maximum; a constant one is zero."""
    exact = maps.astype(np.float64)
    low, high = exact.min((1, 2), keepdims=True), exact.max((1, 2), keepdims=True)
    return np.asarray((exact - low) / np.where(high > low, high - low, 1))


def _windows(maps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Every window that lies within a map: [N, rows, columns, height, width]."""
    height, width = (min(WINDOW, side) for side in maps.shape[1:])
    return sliding_window_view(maps, (height, width), axis=(1, 2))
