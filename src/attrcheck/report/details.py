"""Details: what is too large for `report.json`, and what only pictures are drawn from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attrcheck.engine.results import CaseResult, Exhibit

MAPS = "report.maps"
"""The folder beside a report that has maps in full size, where images are large."""


@dataclass(frozen=True)
class CaseDetails:
    """Of one case: scores of single images, [methods, images], and errors of curves, by method.

    The images are the first of the dataset. NaN stands for what is not known.
    """

    methods: list[str]
    image_scores: NDArray[np.float32]
    curve_errors: NDArray[np.float32]

    @classmethod
    def of(cls, result: CaseResult) -> CaseDetails:
        """Those of a result."""
        outcomes = result.outcomes
        return cls(
            methods=list(outcomes),
            image_scores=_table([outcome.image_scores for outcome in outcomes.values()]),
            curve_errors=_table([outcome.curve_errors for outcome in outcomes.values()]),
        )


@dataclass(frozen=True)
class Details:
    """All details of a report; started: when its run did, which tells it from others."""

    started: str = ""
    cases: dict[str, CaseDetails] = field(default_factory=dict)
    exhibits: list[Exhibit] = field(default_factory=list)

    @classmethod
    def of(
        cls, started: str, results: Iterable[CaseResult], exhibits: Iterable[Exhibit]
    ) -> Details:
        """Those of a run; of a pair's exhibits, which are alike, the first one is kept."""
        kept: dict[str, Exhibit] = {}
        for exhibit in exhibits:
            kept.setdefault(exhibit.pair, exhibit)
        cases = {result.case: CaseDetails.of(result) for result in results}
        return cls(started, cases, [kept[pair] for pair in sorted(kept)])


def _table(rows: list[NDArray[Any]]) -> NDArray[np.float32]:
    """Rows of any length as one array, with NaN behind the short ones."""
    width = max(map(len, rows), default=0)
    table = np.full((len(rows), width), np.nan, dtype=np.float32)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table
