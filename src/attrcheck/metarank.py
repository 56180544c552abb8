"""Meta-Rank: the rankings of many cases fused into one scale of methods, with intervals."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attrcheck.tallies import (
    Standings,
    Tally,
    checked,
    per_case,
    relative,
    tally,
    tally_standings,
    weighted,
)

Floats = NDArray[np.float64]

# Meta-Ranks closer than this differ by rounding alone and share a place.
ROUNDING = 1e-9
# Methods beyond which the linear system is reduced to one of kinds, and samples share the cores.
LARGE = 256
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

    def share_won(self, at: int) -> float | None:
        """The share of its comparisons that a method won; None if it met nobody."""
        others = np.arange(len(self.kappa)) != at
        played = self.compared[at][others].sum()
        return float(self.wins[at][others].sum() / played) if played else None


def fuse(
    scores: ArrayLike,
    *,
    higher_is_better: ArrayLike = True,
    smoothing: float = 0.5,
    clip: float | None = None,
    tolerance: ArrayLike = 0.0,
    names: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
) -> MetaRank:
    """Fuse scores [cases, methods], NaN where absent, into a scale kappa of sum zero.

    kappa minimises the sum over compared pairs of (L_ij - (kappa_i - kappa_j))^2, where
    L_ij = ln((S_ij + a) / (n_ij - S_ij + a)), S_ij counts wins of i over j and half of the ties
    among their n_ij common cases, and a is `smoothing`. With `clip=eps` (the paper's mode)
    L_ij = logit(S_ij / n_ij clipped to [eps, 1 - eps]) instead. Scores that differ by at most
    `tolerance` tie; it and `higher_is_better` are one value or one per case. With `weights`, one
    per case, S and n are sums of weights that were brought to a mean of 1: only their ratios count,
    and there is as much evidence as there are cases.

    >>> fuse([[0.9, 0.5], [0.8, 0.1]]).kappa.round(3).tolist()  # +-ln(2.5 / 0.5) / 2
    [0.805, -0.805]
    """
    scores = checked(scores, "cases, methods")
    labels = [str(index) for index in range(scores.shape[1])] if names is None else list(names)
    if len(labels) != scores.shape[1] or not labels:
        raise ValueError(f"{len(labels)} names do not fit scores of shape {scores.shape}")
    _check_mapping(smoothing, clip)
    tallied = tally(scores, higher_is_better=higher_is_better, tolerance=tolerance, weights=weights)
    probability, logit = _pairwise(tallied, smoothing, clip)
    met = tallied.compared > 0
    if len(groups := _groups(met)) > 1:
        raise DisconnectedError([[labels[index] for index in group] for group in groups])
    kappa = _scale(logit.sum(axis=1), met)
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
        wins=tallied.wins,
        compared=tallied.compared.astype(np.float64),
    )


def scale(tallied: Tally, *, smoothing: float = 0.5) -> Floats | None:
    """kappa of `fuse`, NaN for methods that took part in no case; None if there is no one scale."""
    there = np.flatnonzero(tallied.present)
    kappa = np.full(len(tallied.present), np.nan)
    if len(there) == len(kappa):
        fitted = _fit(tallied, smoothing, None)
    else:
        square = np.ix_(there, there)
        part = Tally(tallied.twice[square], tallied.compared[square], tallied.present[there])
        fitted = _fit(part, smoothing, None)
    if fitted is None:
        return None
    kappa[there] = fitted
    return kappa


def board(tallied: Tally) -> Floats:
    """Places of the methods; NaN for those without a case, and for all if there is no one scale."""
    kappa = scale(tallied)
    if kappa is None:
        return np.full(len(tallied.present), np.nan)
    return np.where(np.isfinite(kappa), places(kappa), np.nan)


def places(kappa: Floats) -> Floats:
    """Places on a scale, 1 the highest; what differs by rounding alone shares one."""
    above = kappa > kappa[:, None] + ROUNDING
    return np.asarray(1.0 + above.sum(axis=1), dtype=np.float64)


def resample(
    replicates: Sequence[Standings],
    groups: Sequence[str],
    *,
    smoothing: float = 0.5,
    clip: float | None = None,
    tolerance: ArrayLike = 0.0,
    samples: int = 1000,
    seed: int = 0,
    weights: ArrayLike | None = None,
) -> Floats:
    """kappa of each method on samples of a two-stage bootstrap, [samples, methods].

    `replicates` has for each case its `standings` [R, methods] on R resamples of the images, the
    same resamples for all cases of one group (its dataset x model pair); a case without a score may
    have none. A sample draws as many groups as there are, with replacement, and for each draw one
    replicate of all its cases: cases that share images stay together. With a single group only the
    images are resampled. A sample in which the methods do not connect is skipped; where fewer than
    a quarter remain, there are none. `tolerance`, one or one per case, is that of the standings.
    `weights` are those of `fuse`; a sample keeps the weights of its cases.
    """
    cases = [np.asarray(case) for case in replicates]
    resamples, size = _shape(cases)
    _, tolerances = per_case(len(cases), True, tolerance)
    _check_mapping(smoothing, clip)
    if len(groups) != len(cases):
        raise ValueError(f"{len(groups)} groups do not fit replicates of {len(cases)} cases")
    if samples < 1:
        raise ValueError(f"samples {samples} must be >= 1")
    factors = relative(np.ones(len(cases)) if weights is None else weights, len(cases))
    # Groups in a fixed order: the result does not depend on the order of the cases.
    labels = [str(group) for group in groups]
    members: dict[str, list[tuple[Standings, float, float]]] = {
        label: [] for label in sorted(labels)
    }
    for label, case, within, factor in zip(labels, cases, tolerances, factors, strict=True):
        members[label] += [(case, float(within), float(factor))] if len(case) else []
    parts = list(members.values())
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(parts), size=(samples, len(parts)))
    replicate = rng.integers(resamples, size=drawn.shape)

    def kappa(chosen: NDArray[np.intp], at: NDArray[np.intp]) -> Floats | None:
        rows: dict[float, list[tuple[Standings, float]]] = {}
        for part, row in zip(chosen, at, strict=True):
            for case, within, factor in parts[part]:
                rows.setdefault(factor, []).append((case[row], within))
        tallied = [(factor, tally_standings(alike, size)) for factor, alike in rows.items()]
        return _fit(weighted(tallied or [(1.0, tally_standings([], size))]), smoothing, clip)

    if size > LARGE:  # nearly all the time is numpy's, which lets threads run side by side
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            fitted = list(pool.map(kappa, drawn, replicate))
    else:
        fitted = list(map(kappa, drawn, replicate))
    kappas = [scale for scale in fitted if scale is not None]
    if len(kappas) < USABLE * samples:
        return np.empty((0, size))
    return np.array(kappas)


def ends(kappas: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Percentile intervals (low, high) of what was resampled, column by column; NaN without any."""
    if not 0 < level < 1:
        raise ValueError(f"level {level} must lie between 0 and 1")
    if not len(kappas):
        return np.full(kappas.shape[1], np.nan), np.full(kappas.shape[1], np.nan)
    low, high = np.quantile(kappas, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def case_ranks(
    scores: ArrayLike, *, higher_is_better: bool = True, tolerance: float = 0.0
) -> Floats:
    """Ranks of the methods within one case, 1 the best and NaN the absent; ties share the mean.

    rank_i = 1 + number of methods better than i + half the number that tie with i.
    """
    row = checked(scores, "methods")
    tallied = tally(row[None, :], higher_is_better=higher_is_better, tolerance=tolerance)
    lost = (tallied.compared - tallied.wins).sum(axis=1)
    return np.where(np.isnan(row), np.nan, 1 + lost)


def _pairwise(tallied: Tally, smoothing: float, clip: float | None) -> tuple[Floats, Floats]:
    """P and L, 0.5 and 0 on the diagonal and where nothing was compared."""
    wins, compared = tallied.wins, tallied.compared
    share = np.divide(wins, compared, out=np.full(wins.shape, 0.5), where=compared > 0)
    # A difference of logarithms is antisymmetric to the last bit; that of a ratio is not.
    log = np.log(wins + smoothing if clip is None else np.clip(share, clip, 1 - clip))
    return share, log - log.T


def _fit(tallied: Tally, smoothing: float, clip: float | None) -> Floats | None:
    """The scale alone; None where the methods do not connect."""
    met = tallied.compared > 0
    if not _connected(met):
        return None
    if clip is not None:
        return _scale(_pairwise(tallied, smoothing, clip)[1].sum(axis=1), met)
    if tallied.twice.dtype.kind == "f":
        log = np.log(tallied.wins + smoothing)
        return _scale((log - log.T).sum(axis=1), met)
    # Few different numbers of wins, so few logarithms.
    log = np.log(np.arange(tallied.twice.max() + 1) / 2 + smoothing)[tallied.twice]
    return _scale((log - log.T).sum(axis=1), met)


def _scale(total: Floats, met: NDArray[np.bool_]) -> Floats:
    """The least-squares scale of sum zero: (D - A + 1/m) kappa = row sums of L, A who met whom."""
    count = len(total)
    degree = met.sum(axis=1)
    if np.all(degree == count - 1):  # everyone met everyone: the system is m times the identity
        return total / count
    if count > LARGE:
        return _scale_by_kind(total, met | np.eye(count, dtype=bool))
    return np.asarray(np.linalg.solve(np.diag(degree) - met + 1 / count, total), dtype=np.float64)


def _scale_by_kind(total: Floats, alike: NDArray[np.bool_]) -> Floats:
    """The same for many methods, of few kinds: those of a kind met the same others, and each other.

    With M = A + I and s its row sums, kappa_i = (total_i + sum of M_ij kappa_j) / s_i, so that the
    sums of kappa over each kind make up a small system.
    """
    kinds: dict[bytes, int] = {}
    rows = np.packbits(alike, axis=1)
    kind = np.array([kinds.setdefault(row.tobytes(), len(kinds)) for row in rows])
    members = np.bincount(kind)
    _, first = np.unique(kind, return_index=True)
    between = alike[np.ix_(first, first)].astype(np.float64)
    reach = between @ members
    system = np.diag(reach) - members[:, None] * (between - 1 / len(total))
    sums = np.linalg.solve(system, np.bincount(kind, total))
    kappa: Floats = (total + (between @ sums)[kind]) / reach[kind]
    return kappa


def _connected(met: NDArray[np.bool_]) -> bool:
    """Whether chains link all; where everyone met everyone, that is seen at once."""
    everyone = len(met) > 0 and np.count_nonzero(met) == len(met) * (len(met) - 1)
    return everyone or len(_groups(met)) == 1


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


def _shape(cases: Sequence[Standings]) -> tuple[int, int]:
    """How many resamples and methods the standings of cases have."""
    if any(case.ndim != 2 for case in cases):
        raise ValueError("the standings of a case must have the axes [resamples, methods]")
    shapes = {case.shape for case in cases if case.size}
    if len(shapes) != 1 or len({case.shape[1] for case in cases}) != 1:
        raise ValueError(f"the standings of all cases must be of one shape, not {sorted(shapes)}")
    [(resamples, methods)] = shapes
    return resamples, methods


def _check_mapping(smoothing: float, clip: float | None) -> None:
    if not 0 < smoothing < np.inf:
        raise ValueError(f"smoothing must be above 0 and finite, not {smoothing!r}")
    if clip is not None and not 0 < clip < 0.5:
        raise ValueError(f"clip must lie between 0 and 0.5, not {clip!r}")
