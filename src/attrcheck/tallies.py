"""Who beats whom: standings of methods within a case, and tallies of them over cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
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
# Bytes that are compared at once: they fit the cache.
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
    tallied = _tally_numbers(numbers[exact])
    return tallied if exact.all() else tallied + _tally_scores(scores[~exact], tolerances[~exact])


def tally_standings(rows: Sequence[tuple[Standings, float]], size: int) -> Tally:
    """That of rows [m] of `standings`, each with its tolerance."""
    numbers = [row for row, _ in rows if row.dtype.kind == "u"]
    rest = [(row, within) for row, within in rows if row.dtype.kind != "u"]
    stacked = np.concatenate(numbers or [np.empty(0, dtype=np.uint8)]).reshape(-1, size)
    tallied = _tally_numbers(stacked)
    if not rest:
        return tallied
    scores, tolerances = zip(*rest, strict=True)
    return tallied + _tally_scores(np.stack(scores), np.array(tolerances))


def _tally_numbers(rows: Standings) -> Tally:
    """That of integers [cases, m]."""
    there = rows > 0
    present = there.sum(axis=0, dtype=np.int32)
    # In `_lead` whoever takes part also beats the absent: as often as only one of two does.
    return _tallied(_lead(rows) - present[:, None] + present, there)


def _tally_scores(rows: Floats, tolerances: Floats) -> Tally:
    """That of scores [cases, m] with a tolerance each, compared pair by pair."""
    lead = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int32)
    for part in _countable(len(rows)):
        within = tolerances[part, None, None]
        _add_lead(lead, rows[part], partial(_more_within, within=within))
    return _tallied(lead, ~np.isnan(rows))


def _tallied(lead: Counts, there: NDArray[np.bool_]) -> Tally:
    """That of how often i is above j, less how often it is below, and of who took part where."""
    if there.all():
        compared = np.full(lead.shape, len(there), dtype=np.int32)
    else:
        ones = there.astype(np.float32)  # sums of ones are exact
        compared = (ones.T @ ones).astype(np.int32)
    twice = lead + compared
    np.fill_diagonal(compared, 0)
    np.fill_diagonal(twice, 0)
    return Tally(twice, compared, there.sum(axis=0, dtype=np.int32))


def _lead(rows: Standings) -> Counts:
    """How often i is above j, less how often it is below, [m, m]."""
    size = rows.shape[1]
    lead = np.zeros((size, size), dtype=np.int32)
    strict = rows.max(axis=1, initial=0) == size  # without ties, whoever is not above is below
    for chosen, more in ((rows[strict], _more_without_ties), (rows[~strict], _more)):
        for part in _countable(len(chosen)):
            _add_lead(lead, chosen[part], more)
    return lead


def _countable(cases: int) -> Iterator[slice]:
    """Parts of so many cases, each of which a byte can count."""
    return (slice(start, start + BYTE) for start in range(0, cases, BYTE))


def _add_lead(
    lead: Counts, rows: Standings, more: Callable[[Standings, Standings], Counts]
) -> None:
    """Add the lead in up to 255 cases: the upper half of it, as the lower one is its negative."""
    size = rows.shape[1]
    step = max(4, BLOCK // max(1, len(rows) * size * rows.itemsize))
    for first in range(0, size, step):
        ahead = more(rows[:, first : first + step, None], rows[:, None, first:])
        lead[first : first + step, first:] += ahead
        lead[first + step :, first : first + step] -= ahead[:, step:].T


def _more(mine: Standings, others: Standings) -> Counts:
    """In how many cases mine is above, less in how many it is below."""
    return _count(mine > others) - _count(mine < others)


def _more_without_ties(mine: Standings, others: Standings) -> Counts:
    return 2 * _count(mine > others) - len(mine)


def _more_within(mine: Standings, others: Standings, within: Floats) -> Counts:
    """`_more` of scores that lead by more than a tolerance; NaN, the absent, never do."""
    ahead = mine - others
    return _count(ahead > within) - _count(ahead < -within)


def _count(flags: NDArray[np.bool_]) -> Counts:
    """How many of up to 255 cases, [cases, ...], have it."""
    counts: NDArray[np.uint8] = flags.view(np.uint8).sum(axis=0, dtype=np.uint8)
    return counts.astype(np.int32)


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
