"""What protocols were run with, and what fine-tuning made of models: tables of the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrcheck.report.text import Table
from attrcheck.report.types import Document

NOTE = (
    "Passes: of the model per image and method, without what methods share; a backward pass counts "
    "as two forward ones. Settings: of the first case. The score of soundness is the mean of its "
    "curve over accuracies from `start`, or chance if that is more, to `level`, the highest that "
    "all methods of a case reach; each case has its own level."
)
REMOVALS = (
    "The share of a model's accuracy that is lost as random pixels go, mean over a tenth to nine "
    "tenths of them, on two embedded models. All removals take the same pixels away: one that "
    "loses more takes the images further out of what the model knows."
)


def tables(document: Document) -> list[Table]:
    """Settings of protocols, what removals do, and fine-tuned models, where there are any."""
    return [*_settings(document), *_removals(document), *_tuned(document)]


def _removals(document: Document) -> list[Table]:
    """How far each removal takes images out of what models know, if a check found out."""
    figures = [result.figures for result in document.checks if result.check == "out_of_domain"]
    rows = sorted((float(lost), name) for some in figures for name, lost in some.items() if lost)
    headers = ["removal", "accuracy lost"]
    shown: list[list[str | int]] = [[name, f"{lost:.0%}"] for lost, name in rows]
    return [Table("How far removals go", headers, shown, REMOVALS)] if rows else []


def _settings(document: Document) -> list[Table]:
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
    return [Table("Settings of protocols", headers, list(rows.values()), NOTE)] if rows else []


def _tuned(document: Document) -> list[Table]:
    """What fine-tuning made of the models, where a protocol asked for it."""
    rows = [
        [
            f"{case.dataset}-{case.model}",
            _deleted(facts),
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
    return [Table("Fine-tuned models", headers, rows)]


def _deleted(facts: Mapping[str, Any]) -> str:
    """What a model was fine-tuned to lose; models that ship know of cells alone."""
    lost = f"{facts['grid']}x{facts['grid']}"
    if facts.get("share"):
        lost = f"random pixels, up to {facts['share']:.0%}"
    return f"{facts['removal']}, {lost}"


def _change(figure: Mapping[str, float]) -> str:
    return f"{figure['before']:.1%} -> {figure['after']:.1%}"
