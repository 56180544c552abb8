"""The leaderboard for the terminal, at most 100 columns wide."""

from __future__ import annotations

from attrcheck.engine.results import RunSettings
from attrcheck.report import consistency, trust
from attrcheck.report.text import Align, for_terminal, one_line, plain_table, shorten
from attrcheck.report.types import BoardEntry, CaseEntry, Counts, Document

MOST_NAMES = 8
MOST_LINES = 20
MOST_IN_NAME = 30
MOST_IN_REASON = 400
MOST_IN_LINE = 1000
WIDTH = 98
HEADERS = (
    *("rank", "method", "Meta-Rank", "95% interval"),
    *("mean rank", "wins", "> random", "s/image"),
)
ALIGN: tuple[Align, ...] = ("right", "left", *("right",) * 6)


def render(document: Document) -> str:
    """What belongs above the board, the board, and what belongs below it."""
    below = [
        *consistency.summary(document),
        *trust.summary(document),
        *trust.findings(document),
        *footer(document),
    ]
    return "\n".join([*map(_line, above(document)), "", board(document), "", *map(_line, below)])


def above(document: Document) -> list[str]:
    """What a reader must know before believing the board; not escaped yet, like all lines here."""
    return [*remarks(document), *accuracies(document), *caveats(document)]


def remarks(document: Document) -> list[str]:
    """What was run, and what is missing."""
    settings, missing = document.settings, document.missing
    cases, methods = len(document.cases), len(settings.methods)
    lines = [
        f"{cases} cases x {methods} methods, {_selection(settings)}, "
        f"{_images(document)} images per case, seed {settings.seed}"
    ]
    if missing:
        lines.append(f"INCOMPLETE: no result from {len(missing)} item(s): {_some(missing)}")
    if settings.partial:
        all_cases, all_methods = settings.of_cases, settings.of_methods
        ran = f"{cases} of {all_cases} cases, {methods} of {all_methods} methods"
        if (cases, methods) == (all_cases, all_methods):
            ran = f"other cases or methods than those of the {_selection(settings)}"
        lines.append(f"PARTIAL: {ran}: {_some(settings.methods)}")
    if settings.gaps:
        lines.append(f"not here: {_some(settings.gaps)}")
    if document.run.verified is not None:
        lines.append(f"verified {document.run.verified} entries of the store")
    return lines


def _selection(settings: RunSettings) -> str:
    suite = f"suite {settings.suite}, " if settings.suite else ""
    return f"{suite}profile {settings.profile}"


def accuracies(document: Document) -> list[str]:
    """The accuracy of every pair, on as many images as any of its cases has; some in each line."""
    cases: dict[str, CaseEntry] = {}
    for case in document.cases:
        pair = f"{case.dataset}-{case.model}"
        # A fine-tuned model is another one.
        if pair not in cases or (bool(case.tuning), -case.images) < (
            bool(cases[pair].tuning),
            -cases[pair].images,
        ):
            cases[pair] = case
    lines: list[str] = []
    for pair, case in cases.items():
        text = f"{pair} {case.accuracy:.1%}"
        if lines and len(lines[-1]) + len(text) < WIDTH:
            lines[-1] += f", {text}"
        else:
            lines.append(f"accuracy: {text}")
    return lines


def caveats(document: Document) -> list[str]:
    """What is doubtful about the images, the models or the intervals."""
    lines = dict.fromkeys(
        f"CAUTION: {case.dataset}-{case.model}: {text}"
        for case in document.cases
        for text in case.caveats
    )
    points = [e.method for e in document.leaderboard if e.low is not None and e.low == e.high]
    hidden = len(lines) - MOST_LINES
    return [
        *list(lines)[:MOST_LINES],
        *([f"CAUTION: ... and {hidden} more"] if hidden > 0 else []),
        *([f"CAUTION: intervals without width: {_some(points)}"] if points else []),
    ]


def board(document: Document) -> str:
    """The leaderboard as plain text."""
    if not document.leaderboard:
        return _line(no_board(document))
    return plain_table(rows(document, MOST_IN_NAME), HEADERS, ALIGN)


def footer(document: Document) -> list[str]:
    """Methods without a score and why, a line for each reason."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for case in document.cases:
        for method, score in case.scores.items():
            if score.status != "ok":
                # What went wrong comes first, what does not apply last.
                key = (score.status, method, one_line(score.reason))
                places.setdefault(key, []).append(case.id)
    lines = []
    for (status, method, reason), ids in sorted(places.items()):
        where = ids[0] if len(ids) == 1 else f"{len(ids)} cases, first {ids[0]}"
        why = shorten(reason, MOST_IN_REASON)
        lines.append(f"{method} in {where}: {status.replace('_', ' ')}: {why}")
    hidden = len(lines) - MOST_LINES
    return lines[:MOST_LINES] + ([f"... and {hidden} more"] if hidden > 0 else [])


def no_board(document: Document) -> str:
    """Why there is none."""
    return f"no leaderboard: {document.leaderboard_problem or 'no method has a score'}"


def rows(document: Document, most: int) -> list[list[str | int]]:
    """The cells of the leaderboard, with names of at most so many characters."""
    seconds = document.run.seconds_per_image
    return [
        [
            entry.rank,
            shorten(entry.method, most),
            f"{entry.meta_rank:+.2f}",
            _interval(entry),
            f"{entry.mean_rank:.1f}",
            _share(entry.wins),
            _beaten(entry.beats_random),
            _seconds(seconds[entry.method]),
        ]
        for entry in document.leaderboard
    ]


def _line(text: str) -> str:
    return for_terminal(shorten(one_line(text), MOST_IN_LINE))


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
