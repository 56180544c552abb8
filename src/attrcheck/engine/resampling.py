"""Bootstrap over images: intervals from rows already observed, without another model pass."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attrcheck.contracts import Protocol, Rows
from attrcheck.store.seeds import derive

RESAMPLES = 1000
LEVEL = 0.95


def resample(images: int, seed: int, pair: str) -> NDArray[np.int64]:
    """How often each image is drawn, [RESAMPLES, images]; the same for all cases of a pair.

    So methods are compared on the same draws, and so are the protocols of one dataset x model.
    """
    rng = np.random.default_rng(derive(seed, pair, "bootstrap"))
    draws = rng.integers(images, size=(RESAMPLES, images))
    offsets = np.arange(RESAMPLES)[:, None] * images
    counts = np.bincount((draws + offsets).ravel(), minlength=RESAMPLES * images)
    return counts.reshape(RESAMPLES, images)


def replicate(protocol: Protocol, rows: Rows, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The score on every resample; NaN where it is not defined."""
    scores = protocol.resample(rows, counts)
    return np.where(np.isfinite(scores), scores, np.nan)


def interval(replicates: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The percentile interval; none if no resample has a score."""
    defined = replicates[np.isfinite(replicates)]
    if not len(defined):
        return None, None
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
