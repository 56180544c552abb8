"""The leaderboard for the terminal, at most 100 columns wide."""

from __future__ import annotations

from collections.abc import Callable

from attrcheck.report import consistency, trust
from attrcheck.report.text import Align, plain_table, shorten, table
from attrcheck.report.types import BoardEntry, Counts, Document

MOST_NAMES = 8
MOST_LINES = 20
HEADERS = (
    *("rank", "method", "Meta-Rank", "95% interval"),
    *("mean rank", "wins", "> random", "s/image"),
)
ALIGN: tuple[Align, ...] = ("right", "left", *("right",) * 6)


def render(document: Document) -> str:
    """What belongs above the board, the board, and what belongs below it."""
    below = [*consistency.summary(document), *trust.summary(document), *footer(document)]
    return "\n".join([*remarks(document), "", board(document), "", *below])


def remarks(document: Document) -> list[str]:
    """What a reader must know before believing the board."""
    settings, missing = document.settings, document.missing
    cases, methods = len(document.cases), len(settings.methods)
    lines = [
        f"{cases} cases x {methods} methods, profile {settings.profile}, "
        f"{_images(document)} images per case, seed {settings.seed}"
    ]
    if missing:
        lines.append(f"INCOMPLETE: no result from {len(missing)} item(s): {_some(missing)}")
    if settings.partial:
        all_cases, all_methods = settings.of_cases, settings.of_methods
        ran = f"{cases} of {all_cases} cases, {methods} of {all_methods} methods"
        if (cases, methods) == (all_cases, all_methods):
            ran = f"other cases or methods than those of the profile {settings.profile}"
        lines.append(f"PARTIAL: {ran}: {_some(settings.methods)}")
    return lines


def board(document: Document) -> str:
    """The leaderboard as plain text."""
    if not document.leaderboard:
        return _no_board(document)
    return plain_table(_rows(document, shorten), HEADERS, ALIGN)


def markdown_board(document: Document) -> str:
    """The leaderboard as a Markdown table, with names in full."""
    if not document.leaderboard:
        return _no_board(document)
    return table(_rows(document, str), HEADERS, ALIGN)


def footer(document: Document) -> list[str]:
    """Methods without a score and why, a line for each reason."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for case in document.cases:
        for method, score in case.scores.items():
            if score.status != "ok":
                # What went wrong comes first, what does not apply last.
                key = (score.status, method, " ".join(score.reason.split()))
                places.setdefault(key, []).append(case.id)
    lines = []
    for (status, method, reason), ids in sorted(places.items()):
        where = ids[0] if len(ids) == 1 else f"{len(ids)} cases, first {ids[0]}"
        lines.append(f"{method} in {where}: {status.replace('_', ' ')}: {reason}")
    hidden = len(lines) - MOST_LINES
    return lines[:MOST_LINES] + ([f"... and {hidden} more"] if hidden > 0 else [])


def _no_board(document: Document) -> str:
    return f"no leaderboard: {document.leaderboard_problem or 'no method has a score'}"


def _rows(document: Document, name: Callable[[str], str]) -> list[list[str | int]]:
    seconds = document.run.seconds_per_image
    return [
        [
            entry.rank,
            name(entry.method),
            f"{entry.meta_rank:+.2f}",
            _interval(entry),
            f"{entry.mean_rank:.1f}",
            _share(entry.wins),
            _beaten(entry.beats_random),
            _seconds(seconds[entry.method]),
        ]
        for entry in document.leaderboard
    ]


def _images(document: Document) -> str:
    """`100`, or `12 to 100` where costly protocols take fewer."""
    counts = sorted({case.images for case in document.cases})
    return " to ".join(dict.fromkeys(str(count) for count in (counts[:1] + counts[-1:]))) or "no"


def _some(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMES]) + (", ..." if len(names) > MOST_NAMES else "")


def _interval(entry: BoardEntry) -> str:
    if entry.low is None or entry.high is None:
        return "-"
    return f"[{entry.low:+.2f}, {entry.high:+.2f}]"


def _share(wins: float | None) -> str:
    return "-" if wins is None else f"{wins:.0%}"


def _beaten(counts: Counts) -> str:
    return f"{counts.cases}/{counts.of}" if counts.of else "-"


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.4f}"
