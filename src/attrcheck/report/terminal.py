"""The verdict and the leaderboard for the terminal, 80 columns wide."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from attrcheck.engine.results import RunSettings
from attrcheck.report import causes, consistency, groups, laws, notable, trust
from attrcheck.report.text import Align, counted, for_terminal, one_line, plain_table, shorten
from attrcheck.report.types import BoardEntry, CaseEntry, Counts, Document, Run
from attrcheck.separation import LETTERS

T = TypeVar("T")

MOST_NAMES = 8
MOST_LINES = 20
MOST_IN_NAME = 24
MOST_IN_REASON = 400
MOST_IN_LINE = 1000
WIDTH = 78
HEADERS = ("#", "method", "Meta-Rank", "95% interval", "group", "mean", "wins", "> random")
ALIGN: tuple[Align, ...] = ("right", "left", "right", "right", "left", *("right",) * 3)
WIDE = HEADERS.index("mean")
"""A column for which a terminal has no room."""
MOST_IN_GROUP = 7
OWN, DUMMY = "* ", "~ "
"""What stands before the names of a user's own methods, and of those that ignore the model."""


def render(document: Document) -> str:
    """The verdict, what belongs above the board, the board, and what belongs below it."""
    first = [verdict(document), *gates(document), *document.baseline, *above(document)]
    below = [
        *filter(None, [legend(document)]),
        *groups.legend(document),
        *groups.firsts(document),
        *notable.lines(document),
        *consistency.summary(document),
        *trust.summary(document),
        *trust.findings(document),
        *laws.summary(document),
        *footer(document),
    ]
    return "\n".join([*map(_line, first), "", board(document), "", *map(_line, below)])


def verdict(document: Document) -> str:
    """The run in a few words."""
    if document.missing:
        return "incomplete"
    broken = sum(not gate.passed for gate in document.gates)
    kept = f"all {len(document.gates)} gates hold" if document.gates else "no gates to keep"
    parts = [f"{broken} of {len(document.gates)} gates broken" if broken else kept]
    faults = causes.faults(document)
    if failing := {fault.method for fault in faults}:
        parts.append(f"{counted(len(failing), 'method')} failed")
    explained = sum(len(fault.checks) for fault in faults)
    failed = sum(result.status == "failed" for result in document.checks) - explained
    if failed:
        parts.append(f"{counted(failed, 'check')} failed")
    if broken_laws := sum(law.status == "broken" for law in document.laws):
        parts.append(f"{counted(broken_laws, 'law')} broken")
    return ", ".join(parts)


def gates(document: Document) -> list[str]:
    """A line for each gate, the broken ones first."""
    ordered = sorted(document.gates, key=lambda gate: gate.passed)
    return [
        f"gate {'holds' if gate.passed else 'BROKEN'}: {gate.rule} ({'; '.join(gate.lines)})"
        for gate in ordered
    ]


def legend(document: Document) -> str:
    """What the marks before names mean, those that are there."""
    facts = [document.settings.facts.get(entry.method) for entry in document.leaderboard]
    marks = [
        (OWN, "your own", any(fact and fact.own for fact in facts)),
        (DUMMY, "ignores the model", any(fact and fact.dummy for fact in facts)),
    ]
    return ", ".join(f"{mark.strip()} {meaning}" for mark, meaning, there in marks if there)


def above(document: Document) -> list[str]:
    """What a reader must know before believing the board; not escaped yet, like all lines here."""
    return [
        *remarks(document),
        *groups.weights(document),
        *accuracies(document),
        *caveats(document),
    ]


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
        *_unresampled(document),
    ]


def _unresampled(document: Document) -> list[str]:
    """Why there are no intervals: most resamples of pairs are without a method of few pairs."""
    pairs: dict[str, set[str]] = {entry.method: set() for entry in document.leaderboard}
    for case in document.cases:
        for method, score in case.scores.items():
            if score.rank is not None and method in pairs:
                pairs[method].add(f"{case.dataset}-{case.model}")
    every = len(set().union(*pairs.values()))
    rare = [method for method, some in pairs.items() if 2 * len(some) < every]
    if not rare or any(entry.low is not None for entry in document.leaderboard):
        return []
    return [
        f"CAUTION: no intervals: most resamples of the {every} dataset x model pairs are without "
        f"{_some(rare)}; leave what applies to few models out, or add models"
    ]


def board(document: Document) -> str:
    """The leaderboard as plain text."""
    if not document.leaderboard:
        return _line(no_board(document))
    cells = [_narrow(row) for row in rows(document, MOST_IN_NAME, MOST_IN_GROUP)]
    return plain_table(cells, _narrow(HEADERS), _narrow(ALIGN))


def _narrow(row: Sequence[T]) -> list[T]:
    """Without the column for which there is no room."""
    return [cell for place, cell in enumerate(row) if place != WIDE]


def footer(document: Document) -> list[str]:
    """Methods without a score and why, a line for each cause; what does not apply is one line."""
    places: dict[tuple[str, str], list[str]] = {}
    not_applicable: dict[str, int] = {}
    for case in document.cases:
        for method, score in case.scores.items():
            if score.status == "not_applicable":
                not_applicable[method] = not_applicable.get(method, 0) + 1
            elif score.status == "undefined":
                places.setdefault((method, one_line(score.reason)), []).append(case.id)
    lines = [fault.line for fault in causes.faults(document)]
    for (method, reason), ids in sorted(places.items()):
        where = ids[0] if len(ids) == 1 else f"{len(ids)} cases, first {ids[0]}"
        lines.append(f"{method} in {where}: undefined: {shorten(reason, MOST_IN_REASON)}")
    hidden = len(lines) - MOST_LINES
    lines = lines[:MOST_LINES] + ([f"... and {hidden} more"] if hidden > 0 else [])
    if not_applicable:
        some = _some([f"{method} ({count})" for method, count in sorted(not_applicable.items())])
        lines.append(f"not applicable in so many cases: {some}; report.html says why")
    return lines


def no_board(document: Document) -> str:
    """Why there is none."""
    return f"no leaderboard: {document.leaderboard_problem or 'no method has a score'}"


def rows(document: Document, most: int, most_in_group: int = len(LETTERS)) -> list[list[str | int]]:
    """The cells of the leaderboard, with names and groups of at most so many characters."""
    return [
        [
            entry.rank,
            shorten(_marked(document, entry.method), most),
            f"{entry.meta_rank:+.2f}",
            _interval(entry),
            shorten(groups.short(entry.letters), most_in_group) or "-",
            f"{entry.mean_rank:.1f}",
            _share(entry.wins),
            _beaten(entry.beats_random),
        ]
        for entry in document.leaderboard
    ]


def origin(run: Run) -> str:
    """How many scores there are, and how many of them the store had."""
    counts = [0, 0]
    for part in run.provenance:
        counts[part.stored] += sum(map(len, part.created.values()))
    return f"{sum(counts)}, {counts[True]} of them from the store"


def _marked(document: Document, method: str) -> str:
    facts = document.settings.facts.get(method)
    if facts is None or not (facts.own or facts.dummy):
        return method
    return f"{OWN if facts.own else DUMMY}{method}"


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


def shown_seconds(seconds: float | None) -> str:
    """Seconds per image, for a cell."""
    return "-" if seconds is None else f"{seconds:.4f}"
