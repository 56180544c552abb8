"""What gates may ask of a report, alone or against a baseline, and which cases broke a gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace

from attrcheck import gate
from attrcheck.deciding import Against, Was, decide
from attrcheck.report import changes
from attrcheck.report.comparison import Comparison, Standing
from attrcheck.report.types import Document

MOST_CASES = 12
"""Names of cases in one line."""
MOST_METHODS = 8
"""Methods of a broken gate whose cases are told."""
INTERVAL = ("low", "high")
"""Figures that cannot be had for a part of the cases or methods."""
FUSED = tuple(field.name for field in fields(Standing))
"""Figures of the board, which is fused anew over what both have."""
LOST = "the method is on its board, and not on that of this run"


def results(
    gates: Sequence[gate.Gate],
    document: Document,
    comparison: Comparison | None = None,
    baseline: Document | None = None,
) -> list[gate.GateResult]:
    """Decide the gates; those that broke name the cases."""
    known = of(document)
    lower = [case.id for case in document.cases if not case.higher_is_better]
    old = against(comparison, baseline, document) if comparison and baseline else None
    decided = [(wanted, decide(wanted, known, old, lower)) for wanted in gates]
    return [_with_cases(result, wanted, document, comparison) for wanted, result in decided]


def of(document: Document) -> dict[str, gate.Figures]:
    """What is known of each method and of each protocol."""
    methods: dict[str, dict[str, gate.Figure | None]] = {}
    for entry in document.leaderboard:
        board = {name: value for name, value in vars(entry).items() if name in gate.METHOD_FIGURES}
        beaten = entry.beats_random
        methods[entry.method] = {**board, "beats_random": (beaten.cases, beaten.of)}
    for verdict in document.method_verdicts:
        if verdict.decided:
            methods.setdefault(verdict.method, {})["checks"] = (verdict.passed, verdict.decided)
    for case in document.cases:
        for method, score in case.scores.items():
            if score.status != "not_applicable":
                figures = methods.setdefault(method, {})
                figures[f"score.{case.id}"] = score.score
                figures[f"rank.{case.id}"] = score.rank
    protocols = {
        trust.protocol: {
            name: trust.checks[name].figure
            for name in gate.PROTOCOL_FIGURES
            if name in trust.checks and trust.checks[name].decided
        }
        for trust in document.protocol_verdicts
    }
    return {"method": methods, "protocol": protocols}


def against(comparison: Comparison, baseline: Document, document: Document) -> Against:
    """What the run and the baseline have in common, as gates ask for it."""
    size = f"{len(comparison.cases)} cases x {len(comparison.methods)} methods"
    return Against(
        new={"method": _common(comparison, new=True)},
        old={
            "method": _old_methods(comparison, baseline, document),
            "protocol": _old_protocols(comparison, baseline),
        },
        rests_on=f"compared over {size} that this run and {comparison.old.name} have",
    )


def _common(comparison: Comparison, new: bool) -> dict[str, dict[str, gate.Figure | None]]:
    """The board over what both have, of this run or of the baseline."""
    return {
        entry.method: _of_standing(entry.new if new else entry.old) for entry in comparison.board
    }


def _of_standing(standing: Standing) -> dict[str, gate.Figure | None]:
    beaten = standing.beats_random
    return {**vars(standing), "beats_random": (beaten.cases, beaten.of)}


def _old_methods(
    comparison: Comparison, baseline: Document, document: Document
) -> dict[str, dict[str, Was]]:
    """Figures of the baseline's methods, or why they are not to be compared."""
    fused, here = _common(comparison, new=False), {entry.method for entry in document.leaderboard}
    refused = _refused(comparison)
    of_all, of_cases = _parts(comparison), _parts(comparison, methods=False)
    methods: dict[str, dict[str, Was]] = {}
    for method, figures in of(baseline)["method"].items():
        known = methods[method] = _in_cases(figures, comparison)
        if "checks" in figures:
            known["checks"] = of_cases or figures["checks"]
        if "meta_rank" not in figures:
            continue
        if method in fused and not refused:
            known |= fused[method]
            known |= {name: of_all or figures[name] for name in INTERVAL}
        else:
            why = refused or (comparison.board_problem if method in here else LOST)
            known |= dict.fromkeys((*FUSED, *INTERVAL), why)
    return methods


def _in_cases(figures: Mapping[str, gate.Figure | None], comparison: Comparison) -> dict[str, Was]:
    """A method's scores and ranks in the baseline's cases, or why they are not to be compared."""
    refused = {refusal.case: refusal.reason for refusal in comparison.refused}
    unscored = {refusal.case: refusal.reason for refusal in comparison.unscored}
    common, of_methods = {*comparison.cases}, _parts(comparison, cases=False)
    known: dict[str, Was] = {}
    for key, value in figures.items():
        figure, _, case = key.partition(".")
        if figure not in gate.CASE_FIGURES or not case:
            continue
        if case in refused:
            known[key] = refused[case]
        elif case in common:
            known[key] = (unscored.get(case) if figure == "score" else of_methods) or value
    return known


def _old_protocols(comparison: Comparison, baseline: Document) -> dict[str, dict[str, Was]]:
    of_all = _parts(comparison)
    return {
        name: {figure: of_all or value for figure, value in figures.items()}
        for name, figures in of(baseline)["protocol"].items()
    }


def _refused(comparison: Comparison) -> str:
    """Why the boards are not to be compared, if cases are refused."""
    return "; ".join(changes.by_reason(comparison.refused))


def _parts(comparison: Comparison, cases: bool = True, methods: bool = True) -> str:
    """Why figures that rest on all cases or methods are not to be compared, if these differ."""
    if cases and (refused := _refused(comparison)):
        return refused
    others = [
        *([*comparison.only_old_cases, *comparison.only_new_cases] if cases else []),
        *([*comparison.only_old_methods, *comparison.only_new_methods] if methods else []),
    ]
    if not others:
        return ""
    shown = ", ".join(others[:MOST_CASES]) + (", ..." if len(others) > MOST_CASES else "")
    return f"it depends on all that was run, and only one of the two has {shown}"


def _with_cases(
    result: gate.GateResult, wanted: gate.Gate, document: Document, comparison: Comparison | None
) -> gate.GateResult:
    """A broken gate names the cases: where a method does not beat `random`, or has moved."""
    lines = []
    for method in result.broken[:MOST_METHODS]:
        if wanted.figure == "beats_random":
            lines += _not_beating(method, document)
        if wanted.baseline and comparison is not None:
            entries = [entry for entry in comparison.board if entry.method == method]
            lines += [
                changes.movement(comparison, entry)
                for entry in entries
                if comparison.of(entry.method)
            ]
    return replace(result, lines=(*result.lines, *lines)) if lines else result


def _not_beating(method: str, document: Document) -> list[str]:
    cases = [
        case.id
        for case in document.cases
        if method in case.scores and case.scores[method].beats_random is False
    ]
    more = f" and {len(cases) - MOST_CASES} more" if len(cases) > MOST_CASES else ""
    some = ", ".join(cases[:MOST_CASES])
    return [f"{method} does not beat random in {some}{more}"] if cases else []
