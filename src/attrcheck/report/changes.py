"""A comparison as people read it: terminal, Markdown and JSON; not escaped before its format."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from attrcheck.engine.wire import dumps
from attrcheck.report.comparison import KINDS, BoardChange, Change, Comparison, Kind, Refusal
from attrcheck.report.text import (
    Align,
    Table,
    for_json,
    for_markdown_text,
    for_terminal,
    one_line,
    plain_table,
    shorten,
    table,
)

MOST_ROWS = {"terminal": 20, "markdown": 40}
"""Changes that are shown; JSON and the page have all."""
MOST_METHODS = 6
MOST_CASES = 3
MOST_IN_NAME = 20
MOST_IN_LINE = 1000
ORDER: tuple[Kind, ...] = ("worse", "lost", "better", "gained", "unpaired", "unclear")
"""In which kinds of changes are listed."""
BOARD_HEADERS = (
    *("#", "was", "method", "Meta-Rank", "was", "change", "95% interval"),
    *("worse", "better", "else"),
)
BOARD_ALIGN: tuple[Align, ...] = ("right", "right", "left", *("right",) * 7)
NARROW = 7
BOARD_NARROW = (0, 1, 2, 3, 5, 6, 7, 8)
"""Columns of the scores that moved, and of the board, for which a terminal has room."""
HEADERS = ("what", "method", "case", "was", "is", "change", "95% interval", "rank", "was")
ALIGN: tuple[Align, ...] = (*("left",) * 3, *("right",) * 6)


def render(comparison: Comparison) -> str:
    """The comparison for the terminal."""
    lines = [verdict(comparison), *notes(comparison)]
    parts = ["\n".join(for_terminal(shorten(one_line(line), MOST_IN_LINE)) for line in lines)]
    for shown, align in _tables(comparison, MOST_ROWS["terminal"], MOST_IN_NAME):
        kept = BOARD_NARROW if shown.headers == BOARD_HEADERS else range(NARROW)
        rows = [[row[at] for at in kept] for row in shown.rows]
        heads = [shown.headers[at] for at in kept]
        cells = plain_table(rows, heads, [align[at] for at in kept])
        parts.append("\n".join([shown.title, "", cells]))
        parts += [for_terminal(shown.note)] if shown.note else []
    return "\n\n".join(parts) + "\n"


def as_markdown(comparison: Comparison, level: int = 1) -> str:
    """The comparison as GitHub-flavoured Markdown; level: of its headings."""
    marks = "#" * level
    parts = [f"{marks} attrcheck comparison: {verdict(comparison)}", _list(notes(comparison))]
    for shown, align in _tables(comparison, MOST_ROWS["markdown"], MOST_IN_LINE):
        parts += [f"{marks}# {shown.title}", table(shown.rows, shown.headers, align)]
        parts += [for_markdown_text(shown.note)] if shown.note else []
    return "\n\n".join(part for part in parts if part) + "\n"


def as_json(comparison: Comparison) -> str:
    """The comparison as `wire.loads(Comparison, text)` reads it."""
    return for_json(dumps(comparison, indent=1, ensure_ascii=False)) + "\n"


def verdict(comparison: Comparison) -> str:
    """The comparison in a few words."""
    if comparison.nothing:
        return "nothing can be compared"
    size = f"{len(comparison.cases)} cases x {len(comparison.methods)} methods"
    if not comparison.changes:
        return f"nothing moved in {size}"
    counts = Counter(change.kind for change in comparison.changes)
    told = ", ".join(f"{counts[kind]} {kind}" for kind in ORDER if counts[kind])
    return f"{told}, of the scores of {size}"


def gist(comparison: Comparison) -> list[str]:
    """What moved in a few lines: the verdict, the methods that moved most, and what was refused."""
    moved = sorted(
        (entry for entry in comparison.board if {*entry.counts} - {"same"}),
        key=lambda entry: (not entry.counts.get("worse"), -abs(entry.difference), entry.method),
    )
    hidden = len(moved) - MOST_METHODS
    return [
        f"against {comparison.old.name}: {verdict(comparison)}",
        *(movement(comparison, entry) for entry in moved[:MOST_METHODS]),
        *([f"... and {hidden} more methods moved"] if hidden > 0 else []),
        *notes(comparison)[2:],
    ]


def movement(comparison: Comparison, entry: BoardChange) -> str:
    """How a method moved: on the board, and in which cases by how much."""
    moved = f"Meta-Rank {entry.old.meta_rank:+.2f} -> {entry.new.meta_rank:+.2f}"
    ends = f" (change {span})" if (span := moved_span(entry)) else ""
    parts = [f"{entry.method}: {moved}{ends}"]
    for kind in ORDER:
        if changes := comparison.of(entry.method, kind):
            parts.append(f"{kind} in {sizes(changes)}")
    return "; ".join(parts)


def sizes(changes: Sequence[Change]) -> str:
    """The cases of changes, each with its size; the first few."""
    some = ", ".join(f"{change.case} ({size(change)})" for change in changes[:MOST_CASES])
    hidden = len(changes) - MOST_CASES
    return f"{some} and {hidden} more" if hidden > 0 else some


def size(change: Change) -> str:
    """The size of a change, with its interval where it has one."""
    if change.difference is None:
        return change.reason or f"rank {_rank(change.old_rank)} -> {_rank(change.new_rank)}"
    ends = f" {span(change)}" if change.low is not None else ""
    return f"{change.difference:+.3g}{ends}"


def span(change: Change) -> str:
    """The interval of a change."""
    if change.low is None or change.high is None:
        return "-"
    return f"[{change.low:+.3g}, {change.high:+.3g}]"


def notes(comparison: Comparison) -> list[str]:
    """What is compared, what differs around it, and what is refused and why."""
    old, new = comparison.old, comparison.new
    lines = [
        f"{side}: {report.name}, {report.started}, {report.cases} cases x {report.methods} methods"
        for side, report in (("old", old), ("new", new))
    ]
    if comparison.differences:
        told = [f"{d.what}: {d.old or 'none'} -> {d.new or 'none'}" for d in comparison.differences]
        lines.append(f"not the same: {'; '.join(told)}")
    lines += [f"not compared: {text}" for text in by_reason(comparison.refused)]
    lines += [f"compared by rank alone: {text}" for text in by_reason(comparison.unscored)]
    for what, names in (
        ("cases of the old report alone", comparison.only_old_cases),
        ("cases of the new report alone", comparison.only_new_cases),
        ("methods of the old report alone", comparison.only_old_methods),
        ("methods of the new report alone", comparison.only_new_methods),
    ):
        if names:
            lines.append(f"{what}: {_some(names)}")
    return lines


def by_reason(refusals: Iterable[Refusal]) -> list[str]:
    """A line for each reason, with its cases."""
    cases: dict[str, list[str]] = {}
    for refusal in refusals:
        cases.setdefault(refusal.reason, []).append(refusal.case)
    return [f"{_some(names)}: {reason}" for reason, names in cases.items()]


def board_table(comparison: Comparison, most_in_name: int = MOST_IN_LINE) -> Table:
    """Both boards side by side, in the order of the new one."""
    rows = [
        [
            *(entry.new.rank, entry.old.rank, shorten(entry.method, most_in_name)),
            *(f"{entry.new.meta_rank:+.2f}", f"{entry.old.meta_rank:+.2f}"),
            f"{entry.difference:+.2f}" if signed(entry.difference) else "",
            moved_span(entry),
            *(entry.counts.get(kind, 0) or "" for kind in ("worse", "better")),
            sum(entry.counts.get(kind, 0) for kind in ORDER if kind not in ("worse", "better"))
            or "",
        ]
        for entry in comparison.board
    ]
    return Table("Board", BOARD_HEADERS, rows, rests_on(comparison))


def moved_span(entry: BoardChange) -> str:
    """The interval of the change of a Meta-Rank; nothing where there is none."""
    if entry.low is None or entry.high is None:
        return ""
    return f"[{entry.low:+.2f}, {entry.high:+.2f}]"


def rests_on(comparison: Comparison) -> str:
    """What the difference of the boards means."""
    return (
        f"Both are fused anew over the {len(comparison.cases)} cases and {len(comparison.methods)} "
        "methods that can be compared: Meta-Rank is relative to the competitors, so a method also "
        "moves where others do. The interval is of the change, from the same samples of dataset x "
        "model pairs and images in both. The last columns count cases in which its score moved."
    )


def ordered(comparison: Comparison) -> list[Change]:
    """The changes, the worse ones first and of these the largest."""
    return sorted(
        comparison.changes,
        key=lambda c: (ORDER.index(c.kind), -c.size, c.case, c.method),
    )


def changes_table(
    comparison: Comparison, most: int | None = None, most_in_name: int = MOST_IN_LINE
) -> Table:
    """The scores that moved, the worse ones first; all of them, or so many."""
    every = ordered(comparison)
    shown = every[:most]
    rows = [
        [
            *(change.kind, shorten(change.method, most_in_name), change.case),
            *(_score(change.old), _score(change.new)),
            "-" if change.difference is None else signed(change.difference),
            *(span(change), _rank(change.new_rank), _rank(change.old_rank)),
        ]
        for change in shown
    ]
    there = [kind for kind in KINDS if any(change.kind == kind for change in every)]
    legend = "; ".join(f"{kind}: {KINDS[kind]}" for kind in there)
    hidden = len(every) - len(shown)
    more = f"... and {hidden} more. " if hidden else ""
    return Table("Scores that moved", HEADERS, rows, f"{more}{legend[:1].upper()}{legend[1:]}.")


def signed(value: float) -> str:
    """A difference in a few digits; nothing where it is none."""
    return "" if abs(value) < 5e-10 else f"{value:+.3g}"


def _tables(
    comparison: Comparison, most: int, most_in_name: int
) -> list[tuple[Table, Sequence[Align]]]:
    shown: list[tuple[Table, Sequence[Align]]] = []
    if comparison.board:
        shown.append((board_table(comparison, most_in_name), BOARD_ALIGN))
    if comparison.changes:
        shown.append((changes_table(comparison, most, most_in_name), ALIGN))
    return shown


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {for_markdown_text(line)}" for line in lines)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:MOST_METHODS])
    hidden = len(names) - MOST_METHODS
    return f"{shown} and {hidden} more" if hidden > 0 else shown


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _rank(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
