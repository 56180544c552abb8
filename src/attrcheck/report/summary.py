"""A summary of one screen as Markdown: for the page of a CI job, and for a pull request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrcheck import gate
from attrcheck.report import causes, changes, notable, terminal
from attrcheck.report.comparison import Comparison
from attrcheck.report.text import (
    MOST_IN_CELL,
    for_markdown_cell,
    for_markdown_code,
    for_markdown_text,
    table,
)
from attrcheck.report.types import Document

MOST_GATES = MOST_FAULTS = MOST_MOVED = 8
MOST_ROWS = 10
TOP = 5
"""Rows of the board where no method is one's own."""
MOST_IN_LINE = 400
GOOD, BAD = "✅", "❌"
MOVED_HEADERS = ("method", "Meta-Rank before", "after", "change", "worse in", "better in")


def render(document: Document, comparison: Comparison | None = None) -> str:
    """Verdict, gates, what moved, the rows that matter, and reasons."""
    methods = shown(document)
    sections = [
        f"### {GOOD if is_green(document) else BAD} attrcheck: "
        + for_markdown_cell(terminal.verdict(document)),
        _gates(document),
        *(_moved(comparison, methods) if comparison else []),
        _board(document, methods),
        _list(_capped([fault.line for fault in causes.faults(document)], MOST_FAULTS)),
        _list(notable.own_lines(document)),
        _list(terminal.remarks(document)),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def is_green(document: Document) -> bool:
    """Whether nothing of what the document holds turns a run red."""
    return not (
        document.missing
        or causes.faults(document)
        or any(not result.passed for result in document.gates)
        or any(result.status == "failed" for result in document.checks)
        or any(law.status == "broken" for law in document.laws)
    )


def shown(document: Document) -> list[str]:
    """The user's own methods; without any, the best ones and those that gates are about."""
    if own := notable.own(document):
        return own
    names = [entry.method for entry in document.leaderboard]
    gated = [
        name
        for rule in map(gate.parse, (result.rule for result in document.gates))
        if rule.kind == "method"
        for name in filter(rule.about, names)
    ]
    return list(dict.fromkeys([*names[:TOP], *gated]))


def _gates(document: Document) -> str:
    ordered = sorted(document.gates, key=lambda result: result.passed)
    lines = [
        f"- {GOOD if result.passed else BAD} {for_markdown_code(result.rule)}: "
        + for_markdown_cell("; ".join(result.lines), MOST_IN_LINE)
        for result in ordered[:MOST_GATES]
    ]
    hidden = len(ordered) - MOST_GATES
    return "\n".join([*lines, *([f"- ... and {hidden} more"] if hidden > 0 else [])])


def _moved(comparison: Comparison, methods: Sequence[str]) -> list[str]:
    """Before and after of these methods and of all that moved for the worse, with the cases."""
    told = {*methods} | {entry.method for entry in comparison.board if entry.counts.get("worse")}
    entries = [entry for entry in comparison.board if entry.method in told]
    rows = [
        [
            *(entry.method, f"{entry.old.meta_rank:+.2f}", f"{entry.new.meta_rank:+.2f}"),
            changes.signed(entry.difference) or "-",
            *(entry.counts.get(kind, 0) or "-" for kind in ("worse", "better")),
        ]
        for entry in entries
    ]
    lines = [changes.movement(comparison, entry) for entry in entries if _has_moved(entry.counts)]
    verdict = f"against {comparison.old.name}: {changes.verdict(comparison)}"
    return [
        for_markdown_text(f"{verdict[:1].upper()}{verdict[1:]}"),
        table(rows[:MOST_ROWS], MOVED_HEADERS, ("left", *("right",) * 5)) if rows else "",
        _list(_capped([*lines, *changes.notes(comparison)[2:]], MOST_MOVED)),
    ]


def _has_moved(counts: Iterable[str]) -> bool:
    return bool({*counts} - {"same"})


def _board(document: Document, methods: Sequence[str]) -> str:
    if not document.leaderboard:
        return for_markdown_text(terminal.no_board(document))
    rows = [
        row
        for row, entry in zip(
            terminal.rows(document, MOST_IN_CELL), document.leaderboard, strict=True
        )
        if entry.method in methods
    ]
    board = table(rows[:MOST_ROWS], terminal.HEADERS, terminal.ALIGN)
    of = f"{len(rows[:MOST_ROWS])} of {len(document.leaderboard)} methods"
    legend = terminal.legend(document)
    return f"{board}\n\n{for_markdown_text(f'{of}; {legend}' if legend else of)}" if rows else ""


def _capped(lines: Sequence[str], most: int) -> list[str]:
    hidden = len(lines) - most
    return [*lines[:most], *([f"... and {hidden} more"] if hidden > 0 else [])]


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {for_markdown_text(line, MOST_IN_LINE)}" for line in lines)
