"""How far rankings agree: the section of `report.md` and the line on the terminal."""

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
from attrcheck.report.text import number, table
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
CHANGES = ["correlation of the boards", "furthest move", "winner without it"]
MOST_CASES = 5


def sections(document: Document) -> list[str]:
    """The section; none unless there are two cases to compare."""
    if len(document.cases) < 2:
        return []
    known = document.consistency
    return [
        "## Consistency",
        _levels(known.levels),
        LEGEND,
        f"{concordance(known.concordance)} {_residual(document)}".strip(),
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


def _levels(levels: Mapping[Level, Agreements]) -> str:
    rows = [
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
    return table(rows, ["rankings", "pairs", "strong", "moderate", "weak", "undefined", "mean"])


def _protocols(protocols: Mapping[str, Mapping[Level, Agreements]]) -> list[str]:
    """Does a protocol agree with itself elsewhere, and with other protocols?"""
    rows = [
        [protocol, *(_mean(levels[level]) for level in TITLES)]
        for protocol, levels in protocols.items()
    ]
    if not rows:
        return []
    note = "By protocol: the mean correlation, and how many are strong / moderate / weak."
    return [table(rows, ["protocol", *TITLES.values()]), note]


def _mean(known: Agreements) -> str:
    if known.mean is None:
        return "-"
    return f"{known.mean:.2f} ({known.strong}/{known.moderate}/{known.weak})"


def _cases(cases: Sequence[CaseAgreement]) -> list[str]:
    rows = [
        [case.case, number(case.with_board), number(case.with_others), *_change(case)]
        for case in cases[:MOST_CASES]
        if case.with_board is not None
    ]
    headers = ["case", "with the board", "with the board of the others", *CHANGES]
    title = "Most at odds with the board, and what it would be without them:"
    return [title, table(rows, headers)] if rows else []


def _without(protocols: Sequence[WithoutProtocol]) -> list[str]:
    if len(protocols) < 2:
        return []
    rows = [[without.protocol, *_change(without)] for without in protocols]
    return ["The board without one protocol:", table(rows, ["without", *CHANGES])]


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
