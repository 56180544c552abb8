"""The critical-difference diagram: methods on one scale, joined where they are not told apart."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, log10

from attrcheck.report.text import shorten
from attrcheck.report.types import BoardEntry, Document
from attrcheck.separation import LETTERS

WIDTH, MARGIN = 900, 250
"""Of the drawing, and of the names on either side of it."""
AXIS, BAR, ROW = 34, 11, 18
"""Where the axis is, and how far lines and names are from each other."""
MOST_METHODS = 100
MOST_IN_NAME = 24
TICKS = 6


@dataclass(frozen=True)
class Mark:
    """A method: where it is on the axis, where its name stands, whether it is told from nobody."""

    x: float
    y: int
    to: int
    anchor: str
    text: str
    full: str
    like_all: bool


@dataclass(frozen=True)
class Bar:
    """A letter: a line from its worst method to its best, with a dot for each of them."""

    letter: str
    y: int
    dots: list[float]


@dataclass(frozen=True)
class Diagram:
    """All that is drawn."""

    width: int
    height: int
    axis: int
    low: float
    high: float
    ticks: list[tuple[float, str]]
    marks: list[Mark]
    bars: list[Bar]


def diagram(document: Document) -> Diagram | None:
    """The drawing; None without letters, or with more methods than names fit."""
    entries = [entry for entry in document.leaderboard if entry.letters]
    if not 1 < len(entries) <= MOST_METHODS:
        return None
    values = [entry.meta_rank for entry in entries]
    least, most = min(values), max(values)
    span = (most - least) or 1.0

    def at(value: float) -> float:
        return round(MARGIN + (WIDTH - 2 * MARGIN) * (value - least) / span, 1)

    letters = sorted({letter for entry in entries for letter in entry.letters}, key=LETTERS.index)
    # Methods that are told from nobody would be on every line, and hide what the lines say.
    free = {entry.method for entry in entries if (entry.best, entry.worst) == (1, len(entries))}
    like_all = free if len(free) < len(entries) else set()
    told = [entry for entry in entries if entry.method not in like_all]
    sharing = {
        letter: sorted(at(entry.meta_rank) for entry in told if letter in entry.letters)
        for letter in letters
    }
    bars = [
        Bar(letter, AXIS + BAR * (place + 1), dots)
        for place, (letter, dots) in enumerate(
            (letter, dots) for letter, dots in sharing.items() if len(dots) > 1
        )
    ]
    top = AXIS + BAR * (len(bars) + 1) + ROW
    half = len(entries) // 2
    sides = [(entries[: len(entries) - half], False), (entries[len(entries) - half :][::-1], True)]
    marks = [
        _mark(entry, at(entry.meta_rank), top + ROW * row, left, entry.method in like_all)
        for side, left in sides
        for row, entry in enumerate(side)
    ]
    return Diagram(
        *(WIDTH, top + ROW * (len(entries) - half), AXIS, at(least), at(most)),
        [(at(value), f"{value:+g}" if value else "0") for value in _ticks(least, most)],
        marks,
        bars,
    )


def _mark(entry: BoardEntry, x: float, y: int, left: bool, like_all: bool) -> Mark:
    text = f"{shorten(entry.method, MOST_IN_NAME)} {entry.meta_rank:+.2f}"
    full = f"{entry.method}: {entry.letters}"
    side, anchor = (MARGIN - 40, "end") if left else (WIDTH - MARGIN + 40, "start")
    return Mark(x, y, side, anchor, text, full, like_all)


def _ticks(least: float, most: float) -> list[float]:
    """About so many round values."""
    rough = ((most - least) or 1.0) / TICKS
    power = 10.0 ** floor(log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = -floor(-least / step)
    return [round(step * k, 9) for k in range(first, floor(most / step) + 1)]
