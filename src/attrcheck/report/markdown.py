"""`report.md`: what a person reads in a minute, or pastes into a discussion."""

from __future__ import annotations

from collections.abc import Sequence

from attrcheck.report import groups, laws, notable, terminal, trust
from attrcheck.report.text import (
    MOST_IN_CELL,
    for_markdown_cell,
    for_markdown_code,
    for_markdown_text,
    table,
)
from attrcheck.report.types import Document

HEADERS = (*terminal.HEADERS, "s/image")
LINKS = (
    "`report.html`, beside this file, has curves, maps, all cases and all checks; `report.json` "
    "has every number."
)


def render(document: Document) -> str:
    """The report in short, as GitHub-flavoured Markdown."""
    sections = [
        f"# attrcheck report: {terminal.verdict(document)}",
        _list(terminal.above(document)),
        *_gates(document),
        *_section("## Against the baseline", document.baseline),
        "## Leaderboard",
        _board(document),
        *_section("## Notable", [*notable.lines(document), *trust.findings(document)]),
        *_section("## Laws", laws.summary(document)),
        *_section("## Without a score", terminal.footer(document)),
        LINKS,
        _run(document),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _section(title: str, lines: Sequence[str]) -> list[str]:
    return [title, _list(lines)] if lines else []


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {for_markdown_text(line)}" for line in lines)


def _board(document: Document) -> str:
    if not document.leaderboard:
        return for_markdown_text(terminal.no_board(document))
    seconds = document.run.seconds_per_image
    rows = [
        [*row, terminal.shown_seconds(seconds[entry.method])]
        for row, entry in zip(
            terminal.rows(document, MOST_IN_CELL), document.leaderboard, strict=True
        )
    ]
    board = table(rows, HEADERS, (*terminal.ALIGN, "right"))
    below = [*filter(None, [terminal.legend(document)]), *groups.legend(document)]
    return "\n\n".join([board, *map(for_markdown_text, below), *_families(document)])


def _families(document: Document) -> list[str]:
    parts = []
    for shown in groups.families(document):
        cells = table(shown.rows, shown.headers)
        parts += [f"### {shown.title}", cells, for_markdown_text(shown.note)]
    return parts


def _gates(document: Document) -> list[str]:
    lines = [
        f"- {'holds' if gate.passed else '**broken**'} {for_markdown_code(gate.rule)}: "
        + for_markdown_cell("; ".join(gate.lines))
        for gate in document.gates
    ]
    return ["## Gates", "\n".join(lines)] if lines else []


def _run(document: Document) -> str:
    run = document.run
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
    line = f"{run.started}, {run.seconds:g} s on {run.machine}, Python {run.python}, {versions}"
    return for_markdown_text(f"{line}; scores: {terminal.origin(run)}")
