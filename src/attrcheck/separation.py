"""Which methods are told apart: all differences of a scale at once, letters, and places."""

from __future__ import annotations

import string
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri, stdtrit

from attrcheck.metarank import LARGE, ROUNDING

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

LETTERS = string.ascii_lowercase + string.ascii_uppercase
LEVEL = 0.95
# Differences that vary less than this do not vary, but for rounding.
STILL = 1e-6
# A difference that must have so many standard errors is told by nothing.
HOPELESS = 100.0
# Differences of resampled scales that are in memory at once.
BLOCK = 2**18


@dataclass(frozen=True, eq=False)
class Separation:
    """Of m methods: which of them are told apart, [m, m].

    margins: half the width of the interval of each difference, [m, m]; all of them hold at once.
    critical: how many standard errors that is, for two methods that met in every group. groups: the
    cliques of methods that are not told apart, each a letter, best first. best, worst: the places
    that a method may have, [m].
    """

    margins: Floats
    apart: Flags
    critical: float
    groups: list[NDArray[np.intp]]
    best: NDArray[np.intp]
    worst: NDArray[np.intp]

    def letters(self, at: int) -> str:
        """Of a method: two that share a letter are not told apart; none where letters ran out."""
        if len(self.groups) > len(LETTERS):
            return ""
        return "".join(
            letter for letter, group in zip(LETTERS, self.groups, strict=False) if at in group
        )


def separate(
    kappa: Floats, samples: Floats, taking_part: Flags, level: float = LEVEL
) -> Separation | None:
    """Tell methods apart by a scale [m] and its bootstrap samples [S, m], paired by sample.

    taking_part: which methods have a case in which group (dataset x model), [groups, m].

    A single-step max-statistic: with d_ij = kappa_i - kappa_j and s_ij the standard deviation of
    its samples, c is the `level` quantile over samples of max_ij |d*_ij - d_ij| / s_ij, so that all
    intervals d_ij -+ c s_ij hold at once with that probability. As s_ij rests on the g groups in
    which both took part (the fewer of theirs, if they never met), c becomes the quantile of
    Student's t with g - 1 degrees of freedom that leaves out as much as c does of the normal
    distribution, and s_ij grows by sqrt(g / (g - 1)); without this, 16 groups would tell equal
    methods apart in one run of five. A single group says nothing of others: there only images are
    resampled, and c stays as it is. A difference that is the same in all samples is told only if so
    many groups would not agree by chance.

    None without samples, for a single method and for very many.
    """
    size = len(kappa)
    if not len(samples) or not 1 < size <= LARGE:
        return None
    difference = kappa[:, None] - kappa
    covariance = np.cov(samples, rowvar=False, bias=True)
    variance = np.diag(covariance)
    spread = np.sqrt(np.maximum(variance[:, None] + variance - 2 * covariance, 0.0))
    spread[spread < STILL] = 0.0
    largest = float(np.quantile(_largest(samples - kappa, spread), level))
    critical = max(largest, float(ndtri((1 + level) / 2)))  # that of a single difference
    margins = critical * spread
    if len(taking_part) > 1:
        margins = _over_groups(critical, spread, _in_common(taking_part))
        critical = _factor(critical, len(taking_part))
    np.fill_diagonal(margins, 0.0)
    apart = np.abs(difference) > margins + ROUNDING
    above = apart & (difference < 0)  # those above a method
    return Separation(
        margins=margins,
        apart=apart,
        critical=critical,
        groups=cliques(~apart[np.ix_(order := np.argsort(-kappa, kind="stable"), order)], order),
        best=1 + above.sum(axis=1),
        worst=size - above.sum(axis=0),
    )


def cliques(alike: Flags, names: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Groups that cover every two that are alike, and hold no two that are not; greedy, in order.

    alike: symmetric, [m, m], in the order of the board. The groups hold `names`, one per row, those
    with the best member first.
    """
    covered = np.zeros_like(alike)
    groups = []
    for first in range(len(alike)):
        for second in np.flatnonzero(alike[first]):
            if second < first or covered[first, second]:
                continue
            if second == first and alike[first].sum() > 1:
                continue  # some other will share its letter
            group = np.array(list(_grown(alike, first, int(second))))
            covered[np.ix_(group, group)] = True
            groups.append(np.sort(group))
    groups.sort(key=lambda group: (group[0], group[-1]))
    return [names[group] for group in groups]


def _grown(alike: Flags, first: int, second: int) -> Iterator[int]:
    """A clique with these two: whoever is alike to all in it so far, from the top of the board."""
    yield from dict.fromkeys((first, second))
    free = alike[first] & alike[second]
    free[[first, second]] = False
    while free.any():
        newcomer = int(free.argmax())
        yield newcomer
        free &= alike[newcomer]
        free[newcomer] = False


def _largest(errors: Floats, spread: Floats) -> Floats:
    """The largest error of a difference in each sample, in standard errors."""
    first, second = np.triu_indices(len(spread), 1)
    varies = spread[first, second] > 0
    first, second = first[varies], second[varies]
    if not len(first):
        return np.zeros(len(errors))
    width = spread[first, second]
    step = max(1, BLOCK // len(first))
    parts = [
        (np.abs(block[:, first] - block[:, second]) / width).max(axis=1)
        for block in (errors[start : start + step] for start in range(0, len(errors), step))
    ]
    return np.concatenate(parts)


def _in_common(taking_part: Flags) -> NDArray[np.intp]:
    """In how many groups two methods took part; if they never met, the fewer of theirs."""
    ones = taking_part.astype(np.intp)
    both = ones.T @ ones
    present = ones.sum(axis=0)
    return np.where(both > 0, both, np.minimum(present[:, None], present))


def _over_groups(critical: float, spread: Floats, counts: NDArray[np.intp]) -> Floats:
    """The margins of differences that rest on so many groups."""
    distinct, where = np.unique(counts, return_inverse=True)
    by_count = np.array([_factor(critical, int(count)) for count in distinct])
    factors = by_count[where.reshape(counts.shape)]
    margins = np.full_like(factors, np.inf)
    np.multiply(factors, spread, out=margins, where=factors < np.inf)
    # That all groups agree is a sign test: of g equal groups, one run in 2^(g-1) has it by chance.
    by_chance = (spread == 0) & (2.0 ** (1 - counts) > 2 * ndtr(-critical))
    margins[by_chance] = np.inf
    return margins


def _factor(critical: float, groups: int) -> float:
    """What the standard error over so many groups is multiplied by; infinite for a single one."""
    freedom = groups - 1
    if freedom < 1:
        return float("inf")
    factor = float(-stdtrit(freedom, ndtr(-critical)) * np.sqrt(groups / freedom))
    return factor if factor < HOPELESS else float("inf")
