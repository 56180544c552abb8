"""Meta-Ranks resampled from the scores of single images, so that two of them can be paired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attrcheck import metarank
from attrcheck.engine.resampling import RESAMPLES, draws
from attrcheck.report.details import CaseDetails
from attrcheck.tallies import TOLERANCE, standings

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Sides:
    """One case in some reports: scores [reports, methods] of which the higher is the better.

    Those of single images, [reports, methods, images], stand behind them; without any, the scores
    are taken as they are, and only pairs are resampled.
    """

    pair: str
    scores: Floats
    images: Floats


def of_images(details: CaseDetails, methods: Sequence[str]) -> Floats:
    """The scores of single images, [methods, images]; NaN where there are none."""
    rows = dict(zip(details.methods, details.image_scores, strict=True))
    nothing = np.full(details.image_scores.shape[1], np.nan)
    return np.array([rows.get(name, nothing) for name in methods], dtype=np.float64)


def differences(cases: Sequence[Sides], weights: Floats | None = None, seed: int = 0) -> Floats:
    """95% intervals, [2, methods], of the change of each method's Meta-Rank, new less old.

    Both reports are fused on the same samples of dataset x model pairs and images. NaN for a method
    without a score, and for all if no case has scores of images in both.
    """
    scores = np.array([case.scores for case in cases])
    there = np.flatnonzero(np.isfinite(scores).any(axis=(0, 1)))
    ends = np.full((2, scores.shape[2]), np.nan)
    if not any(case.images.size for case in cases):
        return ends
    resampled = [replicates(case) for case in cases]
    old, new = (
        metarank.resample(
            [standings(both[side][:, there], TOLERANCE) for both in resampled],
            [case.pair for case in cases],
            tolerance=TOLERANCE,
            seed=seed,
            weights=weights,
        )
        for side in (0, 1)
    )
    ends[:, there] = metarank.ends(new - old)
    return ends


def replicates(case: Sides) -> Floats:
    """The scores on resamples of the images, the same in all, [reports, resamples, methods].

    They lie around the scores, which may be of more images than are known one by one. What only one
    report has is in none: a sample then falls apart in all or in none.
    """
    if not case.images.size:
        return np.repeat(case.scores[:, None], RESAMPLES, axis=1)
    known: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(case.images))
    filled = np.where(known, case.images, 0.0)
    counted = known.T.astype(np.float64)
    parts = []
    with np.errstate(invalid="ignore"):
        means = filled.sum(axis=2) / known.sum(axis=1)
        for counts in draws(case.images.shape[2], 0, case.pair):
            drawn = counts.astype(np.float64)
            parts.append(np.array([drawn @ side.T for side in filled]) / (drawn @ counted))
    # A method without scores of images has its score.
    moved = np.concatenate(parts, axis=1) - means[:, None]
    return case.scores[:, None] + np.where(known.any(axis=1), moved, 0.0)
