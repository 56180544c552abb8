"""Meta-Rank: the rankings of many cases fused into one scale of methods, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int32]
Standings = NDArray[Any]
"""Integers, 0 the absent, or floats, NaN the absent: of either the higher is the better."""

# Meta-Ranks closer than this differ by rounding alone and share a place.
ROUNDING = 1e-9
# Comparisons made at once: their bytes fit the cache.
BLOCK = 2**19
# Wins that a byte can count.
BYTE = 255
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


@dataclass(frozen=True, eq=False)
class Tally:
    """Who beat whom in some cases; tallies of other cases can be added and taken away, exactly.

    twice: 2 S, [m, m], where S counts wins and half of the ties. compared: in how many cases two
    methods met, [m, m] with a zero diagonal. present: in how many a method took part, [m].
    """

    twice: Counts
    compared: Counts
    present: Counts

    @property
    def wins(self) -> Floats:
        """S, [m, m]."""
        return self.twice / 2

    def __add__(self, other: Tally) -> Tally:
        """That of the cases of both."""
        return Tally(
            self.twice + other.twice, self.compared + other.compared, self.present + other.present
        )

    def __sub__(self, other: Tally) -> Tally:
        """That of the cases without those of the other."""
        return Tally(
            self.twice - other.twice, self.compared - other.compared, self.present - other.present
        )


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
    _check_mapping(smoothing, clip)
    tallied = tally(scores, higher_is_better=higher_is_better, tolerance=tolerance)
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


def tally(
    scores: ArrayLike, *, higher_is_better: ArrayLike = True, tolerance: ArrayLike = 0.0
) -> Tally:
    """Who beat whom in these cases; see `fuse`."""
    scores = _checked(scores, "cases, methods")
    signs, tolerances = _per_case(len(scores), higher_is_better, tolerance)
    return _tally(scores * signs[:, None], tolerances)


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


def standings(scores: ArrayLike, tolerance: float = 0.0) -> Standings:
    """The least integers that order the scores in each row [R, methods] alike, 0 where absent.

    Of scores the higher is the better, and those that differ by at most `tolerance` share a number.
    No integers can say that b ties with both a and c, and c still beats a; where that occurs, the
    scores come back as they are.

    >>> standings([[0.5, 0.25, np.nan, 0.5]]).tolist()
    [[2, 1, 0, 2]]
    """
    rows = _checked(scores, "rows, methods")
    numbers, exact = _number(rows, np.full(len(rows), tolerance))
    return numbers if exact.all() else rows


def intervals(
    replicates: Sequence[Standings],
    groups: Sequence[str],
    *,
    smoothing: float = 0.5,
    clip: float | None = None,
    tolerance: ArrayLike = 0.0,
    samples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Percentile intervals (low, high) of each method's kappa, from a two-stage bootstrap.

    `replicates` has for each case its `standings` [R, methods] on R resamples of the images, the
    same resamples for all cases of one group (its dataset x model pair); a case without a score may
    have none. A sample draws as many groups as there are, with replacement, and for each draw one
    replicate of all its cases: cases that share images stay together. With a single group only the
    images are resampled. A sample in which the methods do not connect is skipped; where fewer than
    a quarter remain, the ends are NaN. `tolerance`, one or one per case, is that of the standings.
    """
    cases = [np.asarray(case) for case in replicates]
    resamples, size = _shape(cases)
    _, tolerances = _per_case(len(cases), True, tolerance)
    _check_mapping(smoothing, clip)
    if len(groups) != len(cases):
        raise ValueError(f"{len(groups)} groups do not fit replicates of {len(cases)} cases")
    if samples < 1 or not 0 < level < 1:
        raise ValueError(f"samples {samples} must be >= 1 and level {level} between 0 and 1")
    # Groups in a fixed order: the result does not depend on the order of the cases.
    labels = [str(group) for group in groups]
    members: dict[str, list[tuple[Standings, float]]] = {label: [] for label in sorted(labels)}
    for label, case, within in zip(labels, cases, tolerances, strict=True):
        members[label] += [(case, float(within))] if len(case) else []
    parts = list(members.values())
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(parts), size=(samples, len(parts)))
    replicate = rng.integers(resamples, size=drawn.shape)
    kappas = []
    for chosen, at in zip(drawn, replicate, strict=True):
        draws = zip(chosen, at, strict=True)
        rows = [(case[row], within) for part, row in draws for case, within in parts[part]]
        kappa = _fit(_tally_standings(rows, size), smoothing, clip)
        if kappa is not None:
            kappas.append(kappa)
    if len(kappas) < USABLE * samples:
        return np.full(size, np.nan), np.full(size, np.nan)
    low, high = np.quantile(kappas, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def case_ranks(
    scores: ArrayLike, *, higher_is_better: bool = True, tolerance: float = 0.0
) -> Floats:
    """Ranks of the methods within one case, 1 the best and NaN the absent; ties share the mean.

    rank_i = 1 + number of methods better than i + half the number that tie with i.
    """
    row = _checked(scores, "methods")
    tallied = tally(row[None, :], higher_is_better=higher_is_better, tolerance=tolerance)
    lost = (tallied.compared - tallied.wins).sum(axis=1)
    return np.where(np.isnan(row), np.nan, 1 + lost)


def _number(scores: Floats, tolerances: Floats) -> tuple[Standings, NDArray[np.bool_]]:
    """`standings` of rows of scores with a tolerance each; and for which rows they are exact."""
    size = scores.shape[1]
    within = tolerances[:, None]
    order = scores.argsort(axis=1)  # the absent come last
    rising = np.take_along_axis(scores, order, axis=1)
    apart = np.zeros(scores.shape, dtype=bool)
    # Differences round alike in both directions of a pair, and never against the order.
    np.greater(np.diff(rising, axis=1), within, out=apart[:, 1:])
    first = np.maximum.accumulate(np.where(apart, np.arange(size), 0), axis=1)
    exact = ~(rising - np.take_along_axis(rising, first, axis=1) > within).any(axis=1)
    numbers = 1 + apart.cumsum(axis=1)
    numbers[np.isnan(rising)] = 0
    standing = np.empty(scores.shape, dtype=np.min_scalar_type(size))
    np.put_along_axis(standing, order, numbers.astype(standing.dtype), axis=1)
    return standing, exact


def _tally(scores: Floats, tolerances: Floats) -> Tally:
    """That of scores of which the higher is the better."""
    numbers, exact = _number(scores, tolerances)
    rest = [_tally_scores(*case) for case in zip(scores[~exact], tolerances[~exact], strict=True)]
    return reduce(Tally.__add__, rest, _tally_numbers(numbers[exact]))


def _tally_standings(rows: Sequence[tuple[Standings, float]], size: int) -> Tally:
    """That of rows [m] of `standings`, each with its tolerance."""
    numbers = [row for row, _ in rows if row.dtype.kind == "u"]
    rest = [_tally_scores(row, within) for row, within in rows if row.dtype.kind != "u"]
    stacked = np.stack(numbers) if numbers else np.empty((0, size), dtype=np.uint8)
    return reduce(Tally.__add__, rest, _tally_numbers(stacked))


def _tally_numbers(rows: Standings) -> Tally:
    """That of integers [cases, m]."""
    there = rows > 0
    present = there.sum(axis=0, dtype=np.int32)
    if there.all():
        compared = np.full((rows.shape[1], rows.shape[1]), len(rows), dtype=np.int32)
    else:
        ones = there.astype(np.float32)  # sums of ones are exact
        compared = (ones.T @ ones).astype(np.int32)
    # In `_lead` whoever takes part also beats the absent: as often as only one of two does.
    twice = _lead(rows) - present[:, None] + present + compared
    np.fill_diagonal(compared, 0)
    np.fill_diagonal(twice, 0)
    return Tally(twice, compared, present)


def _lead(rows: Standings) -> Counts:
    """How often i is above j, less how often it is below, [m, m]."""
    size = rows.shape[1]
    lead = np.zeros((size, size), dtype=np.int32)
    strict = rows.max(axis=1, initial=0) == size  # without ties, whoever is not above is below
    for part, tied in ((rows[strict], False), (rows[~strict], True)):
        for start in range(0, len(part), BYTE):
            _add_lead(lead, part[start : start + BYTE], tied)
    return lead


def _add_lead(lead: Counts, rows: Standings, tied: bool) -> None:
    """Add the lead in up to 255 cases: the upper half of it, as the lower one is its negative."""
    size = rows.shape[1]
    step = max(1, BLOCK // max(1, len(rows) * size))
    for first in range(0, size, step):
        mine, others = rows[:, first : first + step, None], rows[:, None, first:]
        above = _count(mine > others)
        more = above - _count(mine < others) if tied else 2 * above - len(rows)
        lead[first : first + step, first:] += more
        lead[first + step :, first : first + step] -= more[:, step:].T


def _count(flags: NDArray[np.bool_]) -> Counts:
    """How many of up to 255 cases, [cases, ...], have it."""
    return flags.view(np.uint8).sum(axis=0, dtype=np.uint8).astype(np.int32)


def _tally_scores(row: Floats, tolerance: float) -> Tally:
    """That of the scores of one case, compared pair by pair."""
    there = ~np.isnan(row)
    compared = np.outer(there, there).astype(np.int32)
    np.fill_diagonal(compared, 0)
    won = (row[:, None] - row > tolerance).astype(np.int32)
    return Tally(compared + won - won.T, compared, there.astype(np.int32))


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
    if len(_groups(met)) != 1:
        return None
    if clip is not None:
        return _scale(_pairwise(tallied, smoothing, clip)[1].sum(axis=1), met)
    # Few different numbers of wins, so few logarithms.
    log = np.log(np.arange(tallied.twice.max() + 1) / 2 + smoothing)[tallied.twice]
    return _scale((log - log.T).sum(axis=1), met)


def _scale(total: Floats, met: NDArray[np.bool_]) -> Floats:
    """The least-squares scale of sum zero: (D - A + 1/m) kappa = row sums of L, A who met whom.

    Methods that met the same others are of one kind. With M = A + I and s its row sums, kappa_i =
    (total_i + sum of M_ij kappa_j) / s_i, so that the sums of each kind make up a small system.
    """
    count = len(total)
    alike = met | np.eye(count, dtype=bool)
    if alike.all():  # the system is m times the identity
        return total / count
    kinds: dict[bytes, int] = {}
    rows = np.packbits(alike, axis=1)
    kind = np.array([kinds.setdefault(row.tobytes(), len(kinds)) for row in rows])
    members = np.bincount(kind)
    _, first = np.unique(kind, return_index=True)
    between = alike[np.ix_(first, first)].astype(np.float64)
    reach = between @ members
    system = np.diag(reach) - members[:, None] * (between - 1 / count)
    sums = np.linalg.solve(system, np.bincount(kind, total))
    kappa: Floats = (total + (between @ sums)[kind]) / reach[kind]
    return kappa


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


def _shape(cases: Sequence[Standings]) -> tuple[int, int]:
    """How many resamples and methods the standings of cases have."""
    if any(case.ndim != 2 for case in cases):
        raise ValueError("the standings of a case must have the axes [resamples, methods]")
    shapes = {case.shape for case in cases if case.size}
    if len(shapes) != 1 or len({case.shape[1] for case in cases}) != 1:
        raise ValueError(f"the standings of all cases must be of one shape, not {sorted(shapes)}")
    [(resamples, methods)] = shapes
    return resamples, methods


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
