"""How far rankings agree: tables of the report, and the line on the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrcheck.consistency import (
    Agreements,
    CaseAgreement,
    Change,
    Concordance,
    Level,
    WithoutProtocol,
)
from attrcheck.report.text import Table, number
from attrcheck.report.types import Document

TITLES: dict[Level, str] = {
    "model": "across models",
    "dataset": "across datasets",
    "protocol": "across protocols",
    "checkpoint": "along training",
}
"""The levels, as the report names them."""
LEGEND = (
    "Pairs of cases that differ in one name only, by Spearman's correlation of how they rank the "
    "methods of both: strong above 0.8, weak below 0.6. Along training: earlier checkpoints of a "
    "model against its last."
)
LEVELS = ("rankings", "pairs", "strong", "moderate", "weak", "undefined", "mean")
CHANGES = ["correlation of the boards", "furthest move", "winner without it"]


def tables(document: Document) -> list[Table]:
    """How far cases agree; none unless there are two to compare."""
    if len(document.cases) < 2:
        return []
    known = document.consistency
    note = f"{LEGEND} {concordance(known.concordance)} {_residual(document)}".strip()
    return [
        Table("Agreement of rankings", LEVELS, _levels(known.levels), note),
        *_protocols(known.protocols),
        *_cases(known.cases),
        *_without(known.without_protocol),
    ]


def summary(document: Document) -> list[str]:
    """Kendall's W in one line; none unless there are two cases to agree."""
    known = document.consistency.concordance
    return [concordance(known)] if known.cases > 1 else []


def concordance(known: Concordance) -> str:
    """Kendall's W, or why there is none."""
    if known.w is None:
        return f"Kendall's W of the cases is undefined: {known.problem}."
    return (
        f"Kendall's W is {known.w:.2f} (1: all rank alike) over {known.cases} cases and the "
        f"{known.methods} of {known.of} methods scored in each."
    )


def _residual(document: Document) -> str:
    if document.pairwise.residual is None:
        return ""
    return (
        f"One scale leaves {document.pairwise.residual:.0%} of the pairwise results "
        "unexplained (relative residual of the fit)."
    )


def _levels(levels: Mapping[Level, Agreements]) -> list[list[object]]:
    return [
        [
            title,
            levels[level].pairs,
            levels[level].strong,
            levels[level].moderate,
            levels[level].weak,
            levels[level].undefined,
            number(levels[level].mean),
        ]
        for level, title in TITLES.items()
    ]


def _protocols(protocols: Mapping[str, Mapping[Level, Agreements]]) -> list[Table]:
    """Does a protocol agree with itself elsewhere, and with other protocols?"""
    rows = [
        [protocol, *(_mean(levels[level]) for level in TITLES)]
        for protocol, levels in protocols.items()
    ]
    if not rows:
        return []
    note = "The mean correlation, and how many are strong / moderate / weak."
    return [Table("Agreement by protocol", ["protocol", *TITLES.values()], rows, note)]


def _mean(known: Agreements) -> str:
    if known.mean is None:
        return "-"
    return f"{known.mean:.2f} ({known.strong}/{known.moderate}/{known.weak})"


def _cases(cases: Sequence[CaseAgreement]) -> list[Table]:
    rows = [
        [case.case, number(case.with_board), number(case.with_others), *_change(case)]
        for case in cases
        if case.with_board is not None
    ]
    headers = ["case", "with the board", "with the board of the others", *CHANGES]
    title = "What the board would be without each case, those most at odds with it first"
    return [Table(title, headers, rows)] if rows else []


def _without(protocols: Sequence[WithoutProtocol]) -> list[Table]:
    if len(protocols) < 2:
        return []
    rows = [[without.protocol, *_change(without)] for without in protocols]
    return [Table("The board without one protocol", ["without", *CHANGES], rows)]


def _change(change: Change) -> list[str]:
    """From the whole board to the one without these cases."""
    if change.winner_changes is None:
        return ["no board"] * len(CHANGES)
    moved = change.moved
    return [
        number(change.rank_correlation),
        f"{moved.method}: {moved.from_} to {moved.to}" if moved else "none",
        f"{', '.join(change.winners)} (new)" if change.winner_changes else "the same",
    ]
