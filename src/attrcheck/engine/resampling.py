"""Bootstrap over images: intervals from rows already observed, without another model pass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from attrcheck.contracts import Protocol, Reduction, Rows
from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.store.seeds import derive
from attrcheck.tallies import TOLERANCE, standings

RESAMPLES = 1000
AT_ONCE = 2**21
"""Counts of draws that are in memory at once."""
LEVEL = 0.95
NOBODY = Outcome("not_applicable")


def draws(images: int, seed: int, pair: str) -> Iterator[NDArray[np.int64]]:
    """How often each image is drawn, [RESAMPLES, images] in all; the same for all cases of a pair.

    So methods are compared on the same draws, and so are the protocols of one dataset x model. They
    come some resamples at a time, as all of them would not fit into memory with many images.
    """
    rng = np.random.default_rng(derive(seed, pair, "bootstrap"))
    size = max(1, min(RESAMPLES, AT_ONCE // images))
    for start in range(0, RESAMPLES, size):
        count = min(size, RESAMPLES - start)
        chosen = rng.integers(images, size=(count, images))
        offsets = np.arange(count)[:, None] * images
        counts = np.bincount((chosen + offsets).ravel(), minlength=count * images)
        yield counts.reshape(count, images)


def resample(images: int, seed: int, pair: str) -> NDArray[np.int64]:
    """All draws at once."""
    return np.concatenate(list(draws(images, seed, pair)))


def replicate(protocol: Protocol, rows: Rows, counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The score on every resample; NaN where it is not defined."""
    return _finite(protocol.resample(rows, counts))


def replicates(
    protocol: Protocol,
    rows: Mapping[str, Rows],
    reductions: Mapping[str, Reduction],
    images: int,
    seed: int,
    pair: str,
) -> dict[str, NDArray[np.float64]]:
    """The score of every method on every resample; all methods share the draws.

    Where a protocol leaves resampling to us, the scores of images that were reduced once will do.
    """
    plain = type(protocol).resample is Protocol.resample
    parts: dict[str, list[NDArray[np.float64]]] = {name: [] for name in rows}
    for counts in draws(images, seed, pair) if rows else ():
        weights = counts.astype(np.float64)  # once for all methods
        for name, some in rows.items():
            means = reductions[name].means(weights) if plain else None
            scores = replicate(protocol, some, counts) if means is None else _finite(means)
            parts[name].append(scores)
    return {name: np.concatenate(scores) for name, scores in parts.items()}


def _finite(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(np.isfinite(scores), scores, np.nan)


def interval(replicates: NDArray[np.float64]) -> tuple[float | None, float | None]:
    """The percentile interval; none if no resample has a score."""
    defined = replicates[np.isfinite(replicates)]
    if not len(defined):
        return None, None
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def condense(result: CaseResult) -> CaseResult:
    """The result with all that the fusion needs of the replicates, so that they need not cross.

    That is who beats whom on each resample, a byte or two per method instead of eight, and who
    beats `random`.
    """
    outcomes = result.outcomes
    sign = 1.0 if result.higher_is_better else -1.0
    size = max((len(outcome.replicates) for outcome in outcomes.values()), default=0)
    scores = np.full((size, len(outcomes)), np.nan)
    for column, outcome in zip(scores.T, outcomes.values(), strict=True):
        column[: len(outcome.replicates)] = sign * outcome.replicates
    rival = outcomes.get("random", NOBODY)
    compared = {
        name: replace(outcome, beats_random=_beats(outcome, rival, sign))
        for name, outcome in outcomes.items()
    }
    return replace(result, outcomes=compared, standings=standings(scores, TOLERANCE))


def _beats(outcome: Outcome, rival: Outcome, sign: float) -> bool | None:
    """Whether the interval of the paired difference lies on the right side of zero.

    None where there is nothing to compare. One to which a method applies without a score is lost.
    """
    if outcome is rival or not len(rival.replicates) or outcome.status == "not_applicable":
        return None
    if not len(outcome.replicates):
        return False
    low, _ = interval(sign * (outcome.replicates - rival.replicates))
    return low is not None and low > 0
