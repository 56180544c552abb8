"""How far rankings agree: the section of `report.md` and the line on the terminal."""

from __future__ import annotations

from typing import Any

from attrcheck.report.text import number, table

TOLD = {
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


def sections(document: dict[str, Any]) -> list[str]:
    """The section; none unless there are two cases to compare."""
    if len(document["cases"]) < 2:
        return []
    found = document["consistency"]
    return [
        "## Consistency",
        _levels(found["levels"]),
        LEGEND,
        f"{concordance(found['concordance'])} {_residual(document)}".strip(),
        *_protocols(found["protocols"]),
        *_cases(found["cases"]),
        *_without(found["without_protocol"]),
    ]


def summary(document: dict[str, Any]) -> list[str]:
    """Kendall's W in one line; none unless there are two cases to agree."""
    found = document["consistency"]["concordance"]
    return [concordance(found)] if found["cases"] > 1 else []


def concordance(found: dict[str, Any]) -> str:
    """Kendall's W, or why there is none."""
    if found["w"] is None:
        return f"Kendall's W of the cases is undefined: {found['problem']}."
    return (
        f"Kendall's W is {found['w']:.2f} (1: all rank alike) over {found['cases']} cases and the "
        f"{found['methods']} of {found['of']} methods scored in each."
    )


def _residual(document: dict[str, Any]) -> str:
    if "residual" not in document["pairwise"]:
        return ""
    return (
        f"One scale leaves {document['pairwise']['residual']:.0%} of the pairwise results "
        "unexplained (relative residual of the fit)."
    )


def _levels(levels: dict[str, Any]) -> str:
    rows = [
        [
            told,
            *(levels[level][name] for name in ("pairs", "strong", "moderate", "weak", "undefined")),
            number(levels[level]["mean"]),
        ]
        for level, told in TOLD.items()
    ]
    return table(rows, ["rankings", "pairs", "strong", "moderate", "weak", "undefined", "mean"])


def _protocols(protocols: dict[str, Any]) -> list[str]:
    """Does a judge agree with itself elsewhere, and with other judges?"""
    rows = [
        [protocol, *(_agreement(levels[level]) for level in TOLD)]
        for protocol, levels in protocols.items()
    ]
    if not rows:
        return []
    note = "By judge: the mean correlation, and how many are strong / moderate / weak."
    return [table(rows, ["judge", *TOLD.values()]), note]


def _agreement(facts: dict[str, Any]) -> str:
    if facts["mean"] is None:
        return "-"
    return f"{facts['mean']:.2f} ({facts['strong']}/{facts['moderate']}/{facts['weak']})"


def _cases(cases: list[dict[str, Any]]) -> list[str]:
    rows = [
        [case["case"], number(case["with_board"]), number(case["with_others"]), *_changes(case)]
        for case in cases[:MOST_CASES]
        if case["with_board"] is not None
    ]
    headers = ["case", "with the board", "with the board of the others", *CHANGES]
    title = "Most at odds with the board, and what it would be without them:"
    return [title, table(rows, headers)] if rows else []


def _without(protocols: list[dict[str, Any]]) -> list[str]:
    if len(protocols) < 2:
        return []
    rows = [[found["protocol"], *_changes(found)] for found in protocols]
    return ["The board without one judge:", table(rows, ["without", *CHANGES])]


def _changes(found: dict[str, Any]) -> list[str]:
    """From the whole board to the one without these cases."""
    if found["winner_changes"] is None:
        return ["no board"] * len(CHANGES)
    moved = found["moved"]
    return [
        number(found["rank_correlation"]),
        f"{moved['method']}: {moved['from']} to {moved['to']}" if moved else "none",
        f"{', '.join(found['winners'])} (new)" if found["winner_changes"] else "the same",
    ]
