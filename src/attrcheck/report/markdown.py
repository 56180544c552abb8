"""`report.md`: the board, its protocols and its cases, to read or to paste into a discussion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrcheck.report import consistency, terminal, trust
from attrcheck.report.text import (
    MOST_IN_CELL,
    for_markdown_cell,
    for_markdown_code,
    for_markdown_text,
    table,
)
from attrcheck.report.types import Document, Run, ScoreEntry


def render(document: Document) -> str:
    """The whole report as GitHub-flavoured Markdown."""
    sections = [
        "# attrcheck report",
        _list(terminal.above(document)),
        "## Leaderboard",
        _board(document),
        *_gates(document),
        *trust.sections(document),
        *consistency.sections(document),
        "## Cases",
        _cases(document),
        *_notes(document),
        *_protocols(document),
        *_tuned(document),
        *trust.failures(document),
        "## Run",
        _run(document.run),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _list(lines: Sequence[str]) -> str:
    return "\n".join(f"- {for_markdown_text(line)}" for line in lines)


def _board(document: Document) -> str:
    if not document.leaderboard:
        return for_markdown_text(terminal.no_board(document))
    return table(terminal.rows(document, MOST_IN_CELL), terminal.HEADERS, terminal.ALIGN)


def _cases(document: Document) -> str:
    methods = [entry.method for entry in document.leaderboard]
    methods = methods or document.settings.methods
    rows = [
        [
            case.id,
            "higher" if case.higher_is_better else "lower",
            case.images,
            f"{case.accuracy:.1%}",
            *(_cell(case.scores[method]) for method in methods),
        ]
        for case in document.cases
    ]
    headers = ["case", "better", "images", "accuracy", *methods]
    return f"{table(rows, headers)}\n\nScore, and in brackets the rank in the case."


def _cell(score: ScoreEntry) -> str:
    if score.score is None:
        return score.status.replace("_", " ")
    return f"{score.score:.3f} ({score.rank:g})"


def _notes(document: Document) -> list[str]:
    lines = terminal.footer(document)
    return ["## Without a score", _list(lines)] if lines else []


PROTOCOLS_NOTE = (
    "Passes: of the model per image and method, without what methods share; a backward pass counts "
    "as two forward ones. Settings: of the first case. The score of `soundness` is the mean of its "
    "curve over accuracies from `start`, or chance if that is more, to `level`, the highest that "
    "all methods of a case reach; `report.json` has the level of each case."
)


def _protocols(document: Document) -> list[str]:
    """The settings of each protocol, and what it costs to score a map of an image."""
    rows: dict[str, list[str | int]] = {}
    for case in document.cases:
        settings = case.protocol_settings
        costs = [score.passes.get("observation") for score in case.scores.values()]
        known = [forward + 2 * backward for forward, backward in filter(None, costs)]
        # The costliest method of the first case stands for all: most cost the same.
        rows.setdefault(
            case.protocol,
            [
                case.protocol,
                "higher" if case.higher_is_better else "lower",
                case.images,
                f"{max(known):g}" if known else "-",
                ", ".join(f"{name}={value}" for name, value in settings.items()),
            ],
        )
    headers = ["protocol", "better", "images", "passes", "settings"]
    return ["## Protocols", table(list(rows.values()), headers), PROTOCOLS_NOTE] if rows else []


def _tuned(document: Document) -> list[str]:
    """What fine-tuning made of the models, where a protocol asked for it."""
    rows = [
        [
            f"{case.dataset}-{case.model}",
            f"{facts['removal']}, {facts['grid']}x{facts['grid']}",
            _change(facts["accuracy"]),
            _change(facts["worst_cell"]),
            *("-" if value is None else f"{value:.3f}" for value in facts["similarity"].values()),
        ]
        for case in document.cases
        if (facts := case.tuning)
    ]
    if not rows:
        return []
    names = next(case.tuning["similarity"] for case in document.cases if case.tuning)
    difference = [f"difference: {name.replace('_', ' ')}" for name in names]
    headers = ["model", "deleted cell", "accuracy", "with the worst cell deleted", *difference]
    return ["## Fine-tuned models", table(rows, headers)]


def _change(figure: Mapping[str, float]) -> str:
    return f"{figure['before']:.1%} -> {figure['after']:.1%}"


def _gates(document: Document) -> list[str]:
    lines = [
        f"- {'passed' if gate.passed else '**failed**'} {for_markdown_code(gate.rule)}: "
        + for_markdown_cell("; ".join(gate.lines))
        for gate in document.gates
    ]
    return ["## Gates", "\n".join(lines)] if lines else []


ELSEWHERE = ("seconds_per_image", "verified", "provenance")
"""Facts of a run that other sections show, or only `report.json`."""


def _run(run: Run) -> str:
    facts = {key: value for key, value in vars(run).items() if key not in ELSEWHERE}
    counts = [0, 0]
    for part in run.provenance:
        counts[part.stored] += sum(map(len, part.created.values()))
    facts["scores"] = f"{sum(counts)}, {counts[True]} of them from the store"
    return _list([f"{key}: {value}" for key, value in facts.items()])
