"""Meta-Rank: the rankings of many cases fused into one scale of methods, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

# Meta-Ranks closer than this differ by rounding alone and share a place.
ROUNDING = 1e-9
# Comparisons made at once.
BLOCK = 2**17
# Below this share of usable bootstrap samples an interval would describe the lucky ones only.
USABLE = 0.25


class DisconnectedError(ValueError):
    """No chain of cases links all methods, so there is no common scale; `groups` are its parts."""

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        super().__init__(groups)
        self.groups = groups

    def __str__(self) -> str:
        parts = " | ".join(", ".join(group) for group in self.groups)
        return (
            f"no case compares methods of these groups with each other: {parts}; "
            "add a case in which they meet, or rank each group by itself"
        )


@dataclass(frozen=True, eq=False)
class MetaRank:
    """The fused scale of m methods and the pairwise results behind it; arrays are [m] or [m, m].

    `probability` and `logit` are NaN for pairs that never met; `residual` is 0 where one scale
    explains every pairwise result and grows to 1 where it explains none.
    """

    kappa: Floats
    order: NDArray[np.intp]
    residual: float
    probability: Floats
    logit: Floats
    wins: Floats
    compared: Floats


def fuse(
    scores: ArrayLike,
    *,
    higher_is_better: ArrayLike = True,
    smoothing: float = 0.5,
    clip: float | None = None,
    tolerance: ArrayLike = 0.0,
    names: Sequence[str] | None = None,
) -> MetaRank:
    """Fuse scores [cases, methods], NaN where absent, into a scale kappa of sum zero.

    kappa minimises the sum over compared pairs of (L_ij - (kappa_i - kappa_j))^2, where
    L_ij = ln((S_ij + a) / (n_ij - S_ij + a)), S_ij counts wins of i over j and half of the ties
    among their n_ij common cases, and a is `smoothing`. With `clip=eps` (the paper's mode)
    L_ij = logit(S_ij / n_ij clipped to [eps, 1 - eps]) instead. Scores that differ by at most
    `tolerance` tie; it and `higher_is_better` are one value or one per case.

    >>> fuse([[0.9, 0.5], [0.8, 0.1]]).kappa.round(3).tolist()  # +-ln(2.5 / 0.5) / 2
    [0.805, -0.805]
    """
    scores = _checked(scores, "cases, methods")
    labels = [str(index) for index in range(scores.shape[1])] if names is None else list(names)
    if len(labels) != scores.shape[1] or not labels:
        raise ValueError(f"{len(labels)} names do not fit scores of shape {scores.shape}")
    signs, tolerances = _per_case(len(scores), higher_is_better, tolerance)
    _check_mapping(smoothing, clip)
    wins, compared = _tally(scores * signs[:, None], tolerances)
    probability, logit = _pairwise(wins, compared, smoothing, clip)
    met = compared > 0
    if len(groups := _groups(met)) > 1:
        raise DisconnectedError([[labels[index] for index in group] for group in groups])
    kappa = _scale(logit, met)
    misfit = np.linalg.norm((logit - (kappa[:, None] - kappa))[met])
    size = np.linalg.norm(logit)
    unknown = ~(met | np.eye(len(kappa), dtype=bool))
    probability[unknown] = logit[unknown] = np.nan
    return MetaRank(
        kappa=kappa,
        order=_order(kappa),
        residual=float(misfit / size) if size else 0.0,
        probability=probability,
        logit=logit,
        wins=wins,
        compared=compared,
    )


def intervals(
    replicates: ArrayLike,
    groups: Sequence[str],
    *,
    higher_is_better: ArrayLike = True,
    smoothing: float = 0.5,
    clip: float | None = None,
    tolerance: ArrayLike = 0.0,
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Percentile intervals (low, high) of each method's kappa, from a two-stage bootstrap.

    `replicates` [cases, methods, R] are scores on R resamples of the images, the same resamples
    for all cases of one group (its dataset x model pair). A sample draws as many groups as there
    are, with replacement, and for each draw one replicate of all its cases: cases that share
    images stay together. With a single group only the images are resampled. A sample in which
    the methods do not connect is skipped; where fewer than a quarter remain, the ends are NaN.
    """
    scores = _checked(replicates, "cases, methods, replicates")
    signs, tolerances = _per_case(len(scores), higher_is_better, tolerance)
    _check_mapping(smoothing, clip)
    if len(groups) != len(scores) or not scores.size:
        raise ValueError(f"{len(groups)} groups do not fit replicates of shape {scores.shape}")
    if samples < 1 or not 0 < level < 1:
        raise ValueError(f"samples {samples} must be >= 1 and level {level} between 0 and 1")
    # One case's methods side by side in memory, and groups in a fixed order: the result then
    # does not depend on the order of the cases.
    scores = np.ascontiguousarray(np.moveaxis(scores * signs[:, None, None], 2, 1))
    labels = np.asarray([str(group) for group in groups])
    members = [np.flatnonzero(labels == label) for label in sorted(set(labels))]
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(members), size=(samples, len(members)))
    replicate = rng.integers(scores.shape[1], size=drawn.shape)
    kappas = []
    for chosen, at in zip(drawn, replicate, strict=True):
        cases = np.concatenate([members[group] for group in chosen])
        rows = np.repeat(at, [len(members[group]) for group in chosen])
        wins, compared = _tally(scores[cases, rows], tolerances[cases])
        met = compared > 0
        if len(_groups(met)) == 1:
            kappas.append(_scale(_pairwise(wins, compared, smoothing, clip)[1], met))
    if len(kappas) < USABLE * samples:
        return np.full(scores.shape[2], np.nan), np.full(scores.shape[2], np.nan)
    low, high = np.quantile(kappas, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def case_ranks(
    scores: ArrayLike, *, higher_is_better: bool = True, tolerance: float = 0.0
) -> Floats:
    """Ranks of the methods within one case, 1 the best and NaN the absent; ties share the mean.

    rank_i = 1 + number of methods better than i + half the number that tie with i.
    """
    row = _checked(scores, "methods")
    signs, tolerances = _per_case(1, higher_is_better, tolerance)
    wins, compared = _tally(row[None, :] * signs[0], tolerances)
    return np.where(np.isnan(row), np.nan, 1 + (compared - wins).sum(axis=1))


def _tally(scores: Floats, tolerances: Floats) -> tuple[Floats, Floats]:
    """S and n, [m, m] with zero diagonals, of scores of which the higher is the better."""
    present = (~np.isnan(scores)).astype(np.float64)
    compared = present.T @ present
    np.fill_diagonal(compared, 0.0)
    won = np.zeros(compared.shape)
    # Blocks that fit the cache, of bytes: fastest to add up, but they hold no more than 255 wins.
    step = max(1, BLOCK // max(1, len(won)))
    for cases, first in product(range(0, len(scores), 255), range(0, len(won), step)):
        block = np.zeros(won[first : first + step].shape, dtype=np.uint8)
        for case in range(cases, min(cases + 255, len(scores))):
            row, within = scores[case], tolerances[case]
            mine = row[first : first + step, None]
            # A difference, unlike row + within, rounds alike in both directions of a pair.
            block += (mine - row > within if within else mine > row).view(np.uint8)
        won[first : first + step] += block
    return (compared + won - won.T) / 2, compared


def _pairwise(
    wins: Floats, compared: Floats, smoothing: float, clip: float | None
) -> tuple[Floats, Floats]:
    """P and L, 0.5 and 0 on the diagonal and where nothing was compared."""
    share = np.divide(wins, compared, out=np.full(wins.shape, 0.5), where=compared > 0)
    # A difference of logarithms is antisymmetric to the last bit; that of a ratio is not.
    log = np.log(wins + smoothing if clip is None else np.clip(share, clip, 1 - clip))
    return share, log - log.T


def _scale(logit: Floats, met: NDArray[np.bool_]) -> Floats:
    """The least-squares scale of sum zero: (D - A + 1/m) kappa = row sums of L, A who met whom."""
    count = len(logit)
    total: Floats = logit.sum(axis=1)
    degree = met.sum(axis=1)
    if np.all(degree == count - 1):  # everyone met everyone: the system is m times the identity
        return total / count
    return np.asarray(np.linalg.solve(np.diag(degree) - met + 1 / count, total), dtype=np.float64)


def _groups(met: NDArray[np.bool_]) -> list[NDArray[np.intp]]:
    """Connected components of the graph of who met whom, each in rising order."""
    groups = []
    unseen = np.ones(len(met), dtype=bool)
    while unseen.any():
        group = np.zeros(len(met), dtype=bool)
        front = np.arange(len(met)) == unseen.argmax()
        while front.any():
            group |= front
            front = met[front].any(axis=0) & ~group
        unseen &= ~group
        groups.append(np.flatnonzero(group))
    return groups


def _order(kappa: Floats) -> NDArray[np.intp]:
    """Indices, best first; methods that differ by rounding alone stay in index order."""
    best = np.argsort(-kappa, kind="stable")
    place = np.cumsum(np.diff(-kappa[best], prepend=-np.inf) > ROUNDING)
    return best[np.lexsort((best, place))]


def _checked(scores: ArrayLike, axes: str) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != len(axes.split(",")):
        raise ValueError(f"scores must have the axes [{axes}], not the shape {array.shape}")
    if np.isinf(array).any():
        raise ValueError("scores must be finite; mark an absent or undefined score by NaN")
    return array


def _per_case(cases: int, higher_is_better: Any, tolerance: ArrayLike) -> tuple[Floats, Floats]:
    """The sign that makes higher better and the tolerance, [cases] each."""
    flags = np.asarray(higher_is_better)
    if flags.shape not in ((), (cases,)) or (flags.size and flags.dtype != np.bool_):
        raise ValueError(
            f"higher_is_better must be one bool or one for each of {cases} cases, "
            f"not {higher_is_better!r}"
        )
    within = np.asarray(tolerance, dtype=np.float64)
    if within.shape not in ((), (cases,)) or not np.all((within >= 0) & np.isfinite(within)):
        raise ValueError(
            f"tolerance must be one number >= 0 or one for each of {cases} cases, not {tolerance!r}"
        )
    signs = np.where(flags, 1.0, -1.0)
    return np.broadcast_to(signs, cases), np.broadcast_to(within, cases)


def _check_mapping(smoothing: float, clip: float | None) -> None:
    if not 0 < smoothing < np.inf:
        raise ValueError(f"smoothing must be above 0 and finite, not {smoothing!r}")
    if clip is not None and not 0 < clip < 0.5:
        raise ValueError(f"clip must lie between 0 and 0.5, not {clip!r}")
