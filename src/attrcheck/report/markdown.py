"""`report.md`: the board, its judges and its cases, to read or to paste into a discussion."""

from __future__ import annotations

from typing import Any

from attrcheck.report import consistency, judges, terminal
from attrcheck.report.text import inline, table


def render(document: dict[str, Any]) -> str:
    """The whole report as GitHub-flavoured Markdown."""
    sections = [
        "# attrcheck report",
        "\n".join(f"- {line}" for line in terminal.remarks(document)),
        "## Leaderboard",
        terminal.board(document, "github"),
        *_gates(document),
        *judges.sections(document),
        *consistency.sections(document),
        "## Cases",
        _cases(document),
        *_notes(document),
        *_protocols(document),
        *_tuned(document),
        *judges.failures(document),
        "## Run",
        _run(document["run"]),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _cases(document: dict[str, Any]) -> str:
    methods = [entry["method"] for entry in document["leaderboard"]]
    methods = methods or document["settings"]["methods"]
    rows = [
        [
            case["id"],
            "higher" if case["higher_is_better"] else "lower",
            case["images"],
            f"{case['accuracy']:.1%}",
            *(_cell(case["scores"][method]) for method in methods),
        ]
        for case in document["cases"]
    ]
    headers = ["case", "better", "images", "accuracy", *methods]
    found = table(rows, headers)
    return f"{found}\n\nScore, and in brackets the rank in the case."


def _cell(outcome: dict[str, Any]) -> str:
    if outcome["score"] is None:
        return str(outcome["status"].replace("_", " "))
    return f"{outcome['score']:.3f} ({outcome['rank']:g})"


def _notes(document: dict[str, Any]) -> list[str]:
    lines = terminal.footer(document)
    return ["## Without a score", "\n".join(f"- {line}" for line in lines)] if lines else []


PROTOCOLS_NOTE = (
    "Passes: of the model, an image and method, what methods share aside; a backward pass counts "
    "as two forward ones. Settings: of the first case. The score of `soundness` is the mean of its "
    "curve over accuracies from `start`, or chance if that is more, to `level`, the highest that "
    "all methods of a case reach; `report.json` has the level of each case."
)


def _protocols(document: dict[str, Any]) -> list[str]:
    """What each judge was set to, and what its looks at an image cost for each method."""
    rows: dict[str, list[Any]] = {}
    for case in document["cases"]:
        settings = case["protocol_settings"]
        costs = [score["passes"].get("observation") for score in case["scores"].values()]
        known = [forward + 2 * backward for forward, backward in filter(None, costs)]
        # The dearest method of the first case speaks for all: most cost the same.
        rows.setdefault(
            case["protocol"],
            [
                case["protocol"],
                "higher" if case["higher_is_better"] else "lower",
                case["images"],
                f"{max(known):g}" if known else "-",
                inline(", ".join(f"{name}={value}" for name, value in settings.items())),
            ],
        )
    headers = ["protocol", "better", "images", "passes", "settings"]
    found = table(list(rows.values()), headers)
    return ["## Protocols", found, PROTOCOLS_NOTE] if rows else []


def _tuned(document: dict[str, Any]) -> list[str]:
    """What fine-tuning made of the models, where a protocol asked for it."""
    rows = [
        [
            f"{case['dataset']}-{case['model']}",
            f"{facts['removal']}, {facts['grid']}x{facts['grid']}",
            _change(facts["accuracy"]),
            _change(facts["worst_cell"]),
            *("-" if value is None else f"{value:.3f}" for value in facts["similarity"].values()),
        ]
        for case in document["cases"]
        if (facts := case["tuning"])
    ]
    if not rows:
        return []
    names = next(case["tuning"]["similarity"] for case in document["cases"] if case["tuning"])
    difference = [f"difference: {name.replace('_', ' ')}" for name in names]
    headers = ["model", "deleted cell", "accuracy", "with the worst cell deleted", *difference]
    found = table(rows, headers)
    return ["## Fine-tuned models", found]


def _change(figure: dict[str, float]) -> str:
    return f"{figure['before']:.1%} -> {figure['after']:.1%}"


def _gates(document: dict[str, Any]) -> list[str]:
    lines = [
        f"- {'passed' if gate['passed'] else '**failed**'} `{gate['rule']}`: "
        + "; ".join(gate["lines"])
        for gate in document["gates"]
    ]
    return ["## Gates", "\n".join(lines)] if lines else []


def _run(run: dict[str, Any]) -> str:
    facts = {key: value for key, value in run.items() if key != "seconds_per_image"}
    return "\n".join(f"- {key}: {value}" for key, value in facts.items())
