"""Who beats whom: standings of methods within a case, and tallies of them over cases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int32]
Numbers: TypeAlias = NDArray[Any]
"""Counts, or floats where cases weigh."""
Standings: TypeAlias = NDArray[Any]
"""Integers, 0 the absent, or floats, NaN the absent: of either the higher is the better."""

TOLERANCE = 1e-9
"""Scores of a case that are this close are ties."""
# Comparisons made at once: their bytes fit the cache.
BLOCK = 2**19
# Cases that a byte can count.
BYTE = 255


@dataclass(frozen=True, eq=False)
class Tally:
    """Who beat whom in some cases; tallies of other cases can be added and taken away, exactly.

    twice: 2 S, [m, m], where S counts wins and half of the ties. compared: in how many cases two
    methods met, [m, m] with a zero diagonal. present: in how many a method took part, [m]. Where
    cases weigh, see `weighted`, these are sums of weights.
    """

    twice: Numbers
    compared: Numbers
    present: Numbers

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


def tally(
    scores: ArrayLike,
    *,
    higher_is_better: ArrayLike = True,
    tolerance: ArrayLike = 0.0,
    weights: ArrayLike | None = None,
) -> Tally:
    """Who beat whom in these cases; see `fuse`."""
    scores = checked(scores, "cases, methods")
    signs, tolerances = per_case(len(scores), higher_is_better, tolerance)
    rising = scores * signs[:, None]
    if weights is None:
        return _tally(rising, tolerances)
    factors = relative(weights, len(scores))
    return weighted(
        (float(factor), _tally(rising[factors == factor], tolerances[factors == factor]))
        for factor in (np.unique(factors) if len(factors) else np.ones(1))
    )


def weighted(parts: Iterable[tuple[float, Tally]]) -> Tally:
    """That of tallies of which each counts so much; a single one of weight 1 stays as it is.

    A case of weight 2 counts like the case twice. Who never met has exactly 0 comparisons.
    """
    some = list(parts)
    if len(some) == 1 and some[0][0] == 1:
        return some[0][1]
    scaled = [Tally(w * one.twice, w * one.compared, w * one.present) for w, one in some]
    return reduce(Tally.__add__, scaled)


def relative(weights: ArrayLike, cases: int) -> Floats:
    """Weights of cases, brought to a mean of 1; so equal ones are exactly 1, whatever they were."""
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (cases,) or not np.all((array > 0) & np.isfinite(array)):
        raise ValueError(f"weights must be one number > 0 for each of {cases} cases")
    if not cases or np.all(array == array[0]):
        return np.ones(cases)
    return np.asarray(array / array.mean(), dtype=np.float64)


def standings(scores: ArrayLike, tolerance: float = 0.0) -> Standings:
    """The least integers that order the scores in each row [R, methods] alike, 0 where absent.

    Of scores the higher is the better, and those that differ by at most `tolerance` share a number.
    No integers can say that b ties with both a and c, and c still beats a; where that occurs, the
    scores come back as they are.

    >>> standings([[0.5, 0.25, np.nan, 0.5]]).tolist()
    [[2, 1, 0, 2]]
    """
    rows = checked(scores, "rows, methods")
    numbers, exact = _number(rows, np.full(len(rows), tolerance))
    return numbers if exact.all() else rows


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
    width = rising - np.take_along_axis(rising, first, axis=1)
    exact: NDArray[np.bool_] = np.logical_not((width > within).any(axis=1))
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


def tally_standings(rows: Sequence[tuple[Standings, float]], size: int) -> Tally:
    """That of rows [m] of `standings`, each with its tolerance."""
    numbers = [row for row, _ in rows if row.dtype.kind == "u"]
    rest = [_tally_scores(row, within) for row, within in rows if row.dtype.kind != "u"]
    stacked = np.concatenate(numbers or [np.empty(0, dtype=np.uint8)]).reshape(-1, size)
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
    step = max(4, BLOCK // max(1, len(rows) * size))
    for first in range(0, size, step):
        mine, others = rows[:, first : first + step, None], rows[:, None, first:]
        above = _count(mine > others)
        more = above - _count(mine < others) if tied else 2 * above - len(rows)
        lead[first : first + step, first:] += more
        lead[first + step :, first : first + step] -= more[:, step:].T


def _count(flags: NDArray[np.bool_]) -> Counts:
    """How many of up to 255 cases, [cases, ...], have it."""
    counts: NDArray[np.uint8] = flags.view(np.uint8).sum(axis=0, dtype=np.uint8)
    return counts.astype(np.int32)


def _tally_scores(row: Floats, tolerance: float) -> Tally:
    """That of the scores of one case, compared pair by pair."""
    there = ~np.isnan(row)
    compared = np.outer(there, there).astype(np.int32)
    np.fill_diagonal(compared, 0)
    won = (row[:, None] - row > tolerance).astype(np.int32)
    return Tally(compared + won - won.T, compared, there.astype(np.int32))


def checked(scores: ArrayLike, axes: str) -> Floats:
    """The scores as floats, or ValueError if they have other axes or are infinite."""
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != len(axes.split(",")):
        raise ValueError(f"scores must have the axes [{axes}], not the shape {array.shape}")
    if np.isinf(array).any():
        raise ValueError("scores must be finite; mark an absent or undefined score by NaN")
    return array


def per_case(cases: int, higher_is_better: Any, tolerance: ArrayLike) -> tuple[Floats, Floats]:
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
