"""The board of the page: its columns, its cells, and where its intervals are drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attrcheck.engine.results import MethodFacts
from attrcheck.report import groups
from attrcheck.report.types import BoardEntry, Document, MethodVerdict

NOTHING = "-"
COLUMNS = (
    ("rank", "place on the board, 1 the best"),
    ("method", "★ yours; a dummy ignores the model"),
    ("interval", "Meta-Rank with its 95% interval; 0 is the average method"),
    ("Meta-Rank", "the place on the fused scale: 0 is the average method"),
    ("95% interval", "of the Meta-Rank, from resampling images and cases"),
    ("group", "methods that share a letter are not told apart, all pairs considered"),
    ("mean rank", "mean of the ranks within the cases"),
    ("wins", "share of its comparisons with other methods that it won"),
    ("> random", "cases in which the paired difference to random excludes zero"),
    ("checks", "checks passed, of those that decided"),
    ("s/image", "seconds to attribute an image"),
    ("family", "what kind of method it is"),
)
"""Names and explanations."""


@dataclass(frozen=True)
class Cell:
    """What a cell shows, and what it is sorted by."""

    shown: str
    by: float | str | None


@dataclass(frozen=True)
class Row:
    """One method: cells by column, and its interval in per cent of the axis.

    before: where it was earlier, if that is drawn.
    """

    method: str
    family: str
    own: bool
    dummy: bool
    cells: dict[str, Cell]
    at: float
    low: float
    high: float
    label: str
    before: float | None = None


@dataclass(frozen=True)
class Axis:
    """The scale that all intervals of the board are drawn on."""

    least: float
    most: float

    def place(self, value: float) -> float:
        """In per cent, with a margin for the dot."""
        width = (self.most - self.least) or 1.0
        return round(3 + 94 * (value - self.least) / width, 2)

    @property
    def zero(self) -> float:
        """Where the average method is."""
        return self.place(0.0)


def axis(entries: Sequence[BoardEntry]) -> Axis:
    """A scale that holds all intervals, and zero."""
    ends = [
        value
        for entry in entries
        for value in (entry.low, entry.meta_rank, entry.high)
        if value is not None
    ]
    return Axis(min([0.0, *ends]), max([0.0, *ends]))


def rows(document: Document) -> list[Row]:
    """The board, best first."""
    scale = axis(document.leaderboard)
    verdicts = {verdict.method: verdict for verdict in document.method_verdicts}
    return [
        _row(document, entry, verdicts.get(entry.method), scale) for entry in document.leaderboard
    ]


def tone(document: Document) -> str:
    """How the verdict looks."""
    if document.missing or any(not gate.passed for gate in document.gates):
        return "bad"
    return "good" if document.gates else "plain"


def _row(document: Document, entry: BoardEntry, checks: MethodVerdict | None, scale: Axis) -> Row:
    facts = document.settings.facts.get(entry.method, MethodFacts(family=NOTHING))
    seconds = document.run.seconds_per_image.get(entry.method)
    beaten = entry.beats_random
    low = entry.meta_rank if entry.low is None else entry.low
    high = entry.meta_rank if entry.high is None else entry.high
    known = entry.low is not None and entry.high is not None
    interval = f"{low:+.2f} to {high:+.2f}" if known else NOTHING
    decided = checks is not None and checks.decided > 0
    cells = {
        "rank": Cell(str(entry.rank), entry.rank),
        "method": Cell(entry.method, entry.method),
        "family": Cell(facts.family, facts.family),
        "Meta-Rank": _number(entry.meta_rank, "{:+.2f}".format),
        "95% interval": Cell(interval, low),
        "group": Cell(groups.short(entry.letters) or NOTHING, entry.best),
        "mean rank": _number(entry.mean_rank, "{:.1f}".format),
        "wins": _number(entry.wins, "{:.0%}".format),
        "> random": Cell(f"{beaten.cases}/{beaten.of}", beaten.cases / beaten.of)
        if beaten.of
        else Cell(NOTHING, None),
        "checks": Cell(f"{checks.passed}/{checks.decided}", checks.passed / checks.decided)
        if checks is not None and decided
        else Cell(NOTHING, None),
        "s/image": _number(seconds, "{:.4f}".format),
    }
    label = f"Meta-Rank {entry.meta_rank:+.2f}"
    return Row(
        method=entry.method,
        family=facts.family,
        own=facts.own,
        dummy=facts.dummy,
        cells=cells,
        at=scale.place(entry.meta_rank),
        low=scale.place(low),
        high=scale.place(high),
        label=f"{label}, 95% interval {interval}" if known else label,
    )


def _number(value: float | None, show: Callable[[float], str]) -> Cell:
    return Cell(NOTHING, None) if value is None else Cell(show(value), value)
