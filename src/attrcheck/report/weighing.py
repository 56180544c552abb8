"""How much each case weighs on the board, and the boards of families of protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from attrcheck import metarank
from attrcheck.contracts import Case, Weights
from attrcheck.report.types import Document, FamilyBoard
from attrcheck.table import Table
from attrcheck.tallies import relative

DIGITS = 4
SAID: dict[Weights, str] = {
    "equal": "all cases weigh alike",
    "pair": "all dataset x model pairs weigh alike, however many cases they have",
    "family": "all families of protocols weigh alike, however many cases they have",
}
"""What weights mean."""


def weights(
    cases: Sequence[Case], scheme: Weights, families: Mapping[str, str]
) -> NDArray[np.float64] | None:
    """One per case, so that what weighs alike has the same sum; None: all cases weigh alike."""
    if scheme == "equal" or not cases:
        return None
    sums = [
        case.pair if scheme == "pair" else families.get(case.protocol, case.protocol)
        for case in cases
    ]
    counts = Counter(sums)
    return np.array([1 / counts[name] for name in sums])


def of_document(document: Document) -> list[float]:
    """The weights of the cases of a report, of mean 1."""
    cases = [Case(case.dataset, case.model, case.protocol) for case in document.cases]
    shares = weights(cases, document.settings.weights, document.settings.families)
    return [1.0] * len(cases) if shares is None else relative(shares, len(cases)).tolist()


def boards(table: Table, families: Mapping[str, str]) -> list[FamilyBoard]:
    """One for each family of protocols, without intervals; none if there is but one family."""
    if not families:
        return []
    by_case = np.array([families.get(case.protocol, case.protocol) for case in table.cases])
    names = sorted({*by_case})
    return [_board(table, name, by_case == name) for name in names] if len(names) > 1 else []


def _board(table: Table, family: str, kept: NDArray[np.bool_]) -> FamilyBoard:
    cases = [case for case, keep in zip(table.cases, kept, strict=True) if keep]
    protocols = sorted({case.protocol for case in cases})
    kappa = metarank.scale(table.tally(kept))
    if kappa is None:
        problem = "no chain of its cases links all methods"
        return FamilyBoard(family, protocols, len(cases), problem=problem)
    places = metarank.places(kappa)
    there = np.flatnonzero(np.isfinite(kappa)).tolist()
    order = sorted(there, key=lambda at: (places[at], at))
    return FamilyBoard(
        *(family, protocols, len(cases)),
        {table.methods[at]: [int(places[at]), round(float(kappa[at]), DIGITS)] for at in order},
    )
