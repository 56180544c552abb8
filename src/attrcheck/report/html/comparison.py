"""The page of a comparison: both boards, and every score that moved, in the report's own style."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from attrcheck.report import changes
from attrcheck.report.comparison import KINDS, Change, Comparison, Kind
from attrcheck.report.html.board import Axis
from attrcheck.report.html.page import fill

OPEN = ("worse", "lost", "better", "gained")
"""Kinds of changes that are shown at once; the others are folded."""


@dataclass(frozen=True)
class Row:
    """Cells of a table, and a drawing in per cent of its axis.

    before: where the old value is, if it is drawn.
    """

    cells: Sequence[str]
    axis: Axis
    at: float
    low: float
    high: float
    label: str
    before: float | None = None


@dataclass(frozen=True)
class Part:
    """The changes of one kind."""

    kind: Kind
    meaning: str
    rows: list[Row]
    folded: bool


def render(comparison: Comparison) -> str:
    """The page; whatever is put into the template is escaped by it, and only there."""
    return fill(
        "comparison.html",
        title="attrcheck comparison",
        verdict=changes.verdict(comparison),
        tone=_tone(comparison),
        remarks=changes.notes(comparison),
        board=_board(comparison),
        headers=changes.BOARD_HEADERS,
        rests_on=changes.rests_on(comparison),
        no_board=comparison.board_problem,
        parts=_parts(comparison),
        columns=changes.HEADERS,
    )


def _tone(comparison: Comparison) -> str:
    kinds = {change.kind for change in comparison.changes}
    if comparison.nothing or kinds & {"worse", "lost"}:
        return "bad"
    return "good" if "better" in kinds else "plain"


def _board(comparison: Comparison) -> list[Row]:
    """Both places of each method on one scale."""
    values = [
        value for entry in comparison.board for value in (entry.old.meta_rank, entry.new.meta_rank)
    ]
    axis = Axis(min([0.0, *values]), max([0.0, *values]))
    rows = []
    cells = changes.board_table(comparison).rows
    for entry, shown in zip(comparison.board, cells, strict=True):
        old, new = axis.place(entry.old.meta_rank), axis.place(entry.new.meta_rank)
        label = f"Meta-Rank {entry.old.meta_rank:+.2f}, now {entry.new.meta_rank:+.2f}"
        ends = min(old, new), max(old, new)
        rows.append(Row([str(cell) for cell in shown], axis, new, *ends, label, before=old))
    return rows


def _parts(comparison: Comparison) -> list[Part]:
    ordered = changes.ordered(comparison)
    cells = changes.changes_table(comparison).rows
    rows: dict[Kind, list[Row]] = {}
    for change, shown in zip(ordered, cells, strict=True):
        rows.setdefault(change.kind, []).append(_row(change, [str(cell) for cell in shown]))
    return [Part(kind, KINDS[kind], some, kind not in OPEN) for kind, some in rows.items()]


def _row(change: Change, cells: Sequence[str]) -> Row:
    """The interval against zero: scores of protocols have no scale in common."""
    at = change.difference or 0.0
    low = at if change.low is None else change.low
    high = at if change.high is None else change.high
    most = max(abs(low), abs(high), abs(at)) or 1.0
    axis = Axis(-most, most)
    label = f"changed by {changes.size(change)}"
    return Row(cells, axis, axis.place(at), axis.place(low), axis.place(high), label)
