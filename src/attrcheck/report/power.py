"""Power: how many images, and dataset x model pairs, would tell two methods apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from attrcheck import metarank
from attrcheck.contracts import Case
from attrcheck.errors import AttrcheckError, suggest
from attrcheck.report import weighing
from attrcheck.report.details import Details
from attrcheck.report.paired import Sides, of_images, replicates
from attrcheck.report.types import CaseEntry, Document
from attrcheck.tallies import TOLERANCE, standings

Floats = NDArray[np.float64]

LEVEL, POWER = 0.05, 0.8
"""Of the two-sided test of one difference, and how surely it is to find it."""
MOST = 10**9
"""More images than this are never."""


@dataclass(frozen=True)
class CasePower:
    """One case: how the first method does against the second, image by image.

    difference: of the means, positive where the first is better; deviation: the standard deviation
    of the images' differences. needed: images that would tell them apart, if the difference is the
    one seen; None: none would. at_best: if it is as large as its 95% interval allows.
    """

    case: str
    images: int
    difference: float
    deviation: float
    low: float
    high: float
    needed: int | None
    at_best: int | None

    @property
    def told(self) -> bool:
        """Whether the images there are tell them apart: the interval excludes zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class BoardPower:
    """On the whole board: the difference of the Meta-Ranks, and where its variance comes from.

    margin: half the interval that the report gives it, corrected for all pairs of methods. images:
    the standard error from images alone, on these dataset x model pairs; total: from pairs and
    images. times: how many times the images of the run would tell the two apart on these pairs.
    pairs: on how many dataset x model pairs both took part; needed: how many it would take to tell
    them apart for others like these, with as many images; None: cannot be said.
    """

    difference: float
    margin: float | None
    images: float
    total: float
    times: float | None
    pairs: int
    needed: int | None


@dataclass(frozen=True)
class Power:
    """What would tell one method from another.

    cases: those that do not tell them apart first, and of these the one that needs fewest images.
    unknown: cases without scores of single images.
    """

    one: str
    other: str
    level: float
    power: float
    cases: list[CasePower]
    board: BoardPower | None = None
    unknown: list[str] = field(default_factory=list)


def needed(difference: float, deviation: float, power: float = POWER) -> int | None:
    """Images with which a paired two-sided t-test at 5% finds a mean difference with this power.

    n = ((z_a + z_b) s / d)^2 + z_a^2 / 2, where the last term makes up for s being estimated.
    """
    if abs(difference) <= TOLERANCE:
        return None
    z = ndtri(1 - LEVEL / 2)
    images = ((z + ndtri(power)) * deviation / difference) ** 2 + z**2 / 2
    return max(2, math.ceil(images)) if images <= MOST else None


def study(
    document: Document, details: Details, one: str, other: str, power: float = POWER
) -> Power:
    """What would tell two methods of a report apart."""
    for name in (one, other):
        if name not in document.settings.methods:
            hint = suggest(name, document.settings.methods)
            raise AttrcheckError(f"the report has no method called {name!r}; {hint}")
    if one == other:
        raise AttrcheckError(f"it takes two methods, and both are {one!r}")
    if not 0 < power < 1:
        raise AttrcheckError(f"a power lies between 0 and 1, and not at {power:g}")
    both = [
        case
        for case in document.cases
        if all(case.scores[name].score is not None for name in (one, other))
    ]
    if not both:
        raise AttrcheckError(f"no case of the report has a score of both {one!r} and {other!r}")
    cases = [powered for case in both if (powered := _case(case, details, one, other, power))]
    known = {powered.case for powered in cases}
    return Power(
        *(one, other, LEVEL, power),
        cases=sorted(cases, key=lambda case: (case.told, case.needed or math.inf, case.case)),
        board=_board(document, details, one, other, power),
        unknown=[case.id for case in both if case.id not in known],
    )


def _case(
    case: CaseEntry, details: Details, one: str, other: str, power: float
) -> CasePower | None:
    """None without scores of single images."""
    known = details.cases.get(case.id)
    if known is None:
        return None
    first, second = of_images(known, [one, other])
    differences = (first - second) * (1 if case.higher_is_better else -1)
    differences = differences[np.isfinite(differences)]
    if len(differences) < 2:
        return None
    mean, deviation = float(differences.mean()), float(differences.std(ddof=1))
    margin = float(ndtri(1 - LEVEL / 2)) * deviation / math.sqrt(len(differences))
    low, high = mean - margin, mean + margin
    return CasePower(
        *(case.id, len(differences), mean, deviation, low, high),
        needed=needed(mean, deviation, power),
        at_best=needed(max(abs(low), abs(high)), deviation, power),
    )


def _board(
    document: Document, details: Details, one: str, other: str, power: float
) -> BoardPower | None:
    """None where there is no board with both, or nothing to resample."""
    order = [entry.method for entry in document.leaderboard]
    if one not in order or other not in order:
        return None
    cases = [Case(case.dataset, case.model, case.protocol) for case in document.cases]
    sides = [_scores(case, details, order) for case in document.cases]
    if not any(side.images.size for side in sides):
        return None
    some = [standings(replicates(side)[0], TOLERANCE) for side in sides]
    places = order.index(one), order.index(other)
    weights = weighing.weights(cases, document.settings.weights, document.settings.families)
    groups = [case.pair for case in cases]

    def error(labels: Sequence[str]) -> float:
        samples = metarank.resample(some, labels, tolerance=TOLERANCE, weights=weights)
        return float(np.std(samples[:, places[0]] - samples[:, places[1]])) if len(samples) else 0.0

    images = error(["all"] * len(cases))  # of one group, only images are resampled
    shared = {
        case.pair
        for case, side in zip(cases, sides, strict=True)
        if np.isfinite(side.scores[0, list(places)]).all()
    }
    pairs = len(shared)
    total = error(groups) if len(set(groups)) > 1 else images
    ranks = {entry.method: entry.meta_rank for entry in document.leaderboard}
    difference = ranks[one] - ranks[other]
    reach = float(ndtri(1 - LEVEL / 2) + ndtri(power)) * images
    return BoardPower(
        *(difference, _margin(document, *places), images, total),
        times=(reach / difference) ** 2 if abs(difference) > TOLERANCE else None,
        pairs=pairs,
        needed=needed(difference, total * math.sqrt(pairs), power) if pairs > 1 else None,
    )


def _scores(case: CaseEntry, details: Details, methods: Sequence[str]) -> Sides:
    """A case as `paired` takes it, with one report in the place of both."""
    sign = 1.0 if case.higher_is_better else -1.0
    scores = [np.nan if (score := case.scores[name].score) is None else score for name in methods]
    known = details.cases.get(case.id)
    images = np.empty((len(methods), 0)) if known is None else of_images(known, methods)
    pair = f"{case.dataset}-{case.model}"
    return Sides(pair, sign * np.array([scores]), sign * images[None])


def _margin(document: Document, first: int, second: int) -> float | None:
    margins = document.separation.margins
    return margins[max(first, second)][min(first, second)] if margins else None
