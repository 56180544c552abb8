"""Decide gates: compare them with what is known of methods and protocols, or with a baseline."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from attrcheck.errors import suggest, suggest_own
from attrcheck.gate import (
    CASE_FIGURES,
    KINDS,
    LOWER_IS_BETTER,
    OPERATORS,
    Figure,
    Figures,
    Gate,
    GateResult,
)

MOST_LINES = 20
MOST_NAMES = 12
ROUNDING = 1e-9
"""Figures that are this close to those of the baseline are the same."""

Was: TypeAlias = Figure | str | None
"""A figure of the baseline, or why there is none to compare with."""


@dataclass(frozen=True)
class Against:
    """A baseline: what is known of it and of this run, over what both have, by kind and name.

    rests_on: what that is, for the message.
    """

    new: Mapping[str, Figures]
    old: Mapping[str, Mapping[str, Mapping[str, Was]]]
    rests_on: str = ""


@dataclass(frozen=True)
class _Line:
    """Whether a gate holds for one figure, None if nobody can say, and how to say so."""

    name: str
    holds: bool | None
    text: str


def decide(
    gate: Gate,
    known: Mapping[str, Figures],
    against: Against | None = None,
    lower: Collection[str] = (),
) -> GateResult:
    """Compare a gate with what is known of each `method` and `protocol`; it holds if all hold.

    lower: the cases in which lower scores are better.
    """
    figures = known.get(gate.kind, {})
    names = [name for name in figures if gate.about(name)]
    if not names:
        line = f"no {gate.kind} matches {gate.subject!r}; {suggest(gate.subject, figures)}"
        return GateResult(gate.text, False, True, (line + _elsewhere(gate, known),))
    if not gate.baseline:
        lines = [
            _plain(gate, name, key, figures[name], lower)
            for name, key in _chosen(gate, {name: figures[name] for name in names})
        ]
    elif against is None:
        return GateResult(gate.text, False, True, ("there is no baseline to compare with",))
    else:
        lines = _against(gate, names, figures, against, lower)
    return _result(gate, lines, against.rests_on if against and gate.baseline else "")


def unknown(gate: Gate, names: Mapping[str, Sequence[str]]) -> str:
    """What of a gate no `method`, `protocol` or `case` of a run is called; empty if nothing."""
    known = names[gate.kind]
    if not any(map(gate.about, known)):
        hint = (suggest_own if gate.kind == "method" else suggest)(gate.subject, known)
        line = f"the run has no {gate.kind} {gate.subject!r}; {hint}"
        return line + _elsewhere(gate, names)
    cases = names["case"]
    if gate.case and not any(gate.reads(f"{gate.figure}.{case}") for case in cases):
        return f"the run has no case {gate.case!r}; {suggest(gate.case, cases)}"
    return ""


def _chosen(gate: Gate, figures: Mapping[str, Collection[str]]) -> list[tuple[str, str]]:
    """The names and figures that the gate is about, in their order.

    Where several match, those that such a figure does not apply to are left out.
    """
    there = [(name, key) for name, keys in figures.items() for key in keys if gate.reads(key)]
    return there or [(name, gate.key) for name in figures]


def _plain(
    gate: Gate, name: str, key: str, figures: Mapping[str, Figure | None], lower: Collection[str]
) -> _Line:
    holds, shown = _compare(gate, gate.value, figures.get(key))
    way = f" ({_better(gate, key, lower)})" if gate.case else ""
    line = f"{name}.{key} is {shown}, wanted {gate.operator} {gate.wanted}{way}"
    if holds is None:
        have = [key for key, other in figures.items() if _known(other) and not _in_case(key)]
        line += f"; {name} has: {', '.join(have) or 'no figures'}"
    return _Line(name, holds, line)


def _against(
    gate: Gate, names: Sequence[str], known: Figures, against: Against, lower: Collection[str]
) -> list[_Line]:
    """A line for each figure that this run or the baseline has."""
    new, old = against.new.get(gate.kind, {}), against.old.get(gate.kind, {})
    figures = {name: {**known[name], **new.get(name, {})} for name in names}
    keys = {name: {**dict.fromkeys(figures[name]), **old.get(name, {})} for name in names}
    chosen = _chosen(gate, keys)
    compared = [(name, key) for name, key in chosen if key in old.get(name, {})] or chosen
    return [
        _line_against(gate, name, key, figures[name].get(key), old.get(name, {}).get(key), lower)
        for name, key in compared
    ]


def _line_against(
    gate: Gate, name: str, key: str, figure: Figure | None, was: Was, lower: Collection[str]
) -> _Line:
    if was is None or isinstance(was, str):
        why = was or "it has no such figure"
        return _Line(name, None, f"{name}.{key} is not to be compared with the baseline: {why}")
    before = _number(was)
    wanted = before + float(gate.value)
    if figure is not None and not isinstance(figure, tuple) and abs(figure - before) <= ROUNDING:
        figure = before
    holds, shown = _compare(gate, wanted, figure)
    change = "" if holds is None else f", changed by {_number(figure) - before:+.3g}"
    return _Line(
        name,
        holds,
        f"{name}.{key} is {shown}, wanted {gate.operator} {gate.wanted} = {wanted:.4g} "
        f"(baseline {before:.4g}{change}; {_better(gate, key, lower)})",
    )


def _result(gate: Gate, lines: Sequence[_Line], rests_on: str) -> GateResult:
    bad = sorted((line for line in lines if not line.holds), key=lambda line: line.holds is False)
    more = (rests_on,) if rests_on and not gate.case else ()
    if bad:
        hidden = len(bad) - MOST_LINES
        told = [line.text for line in bad[:MOST_LINES]]
        told += [f"... and {hidden} more"] if hidden > 0 else []
        return GateResult(
            gate.text,
            passed=False,
            error=any(line.holds is None for line in bad),
            lines=(*told, *more),
            broken=tuple(dict.fromkeys(line.name for line in bad)),
        )
    if len(lines) == 1:
        return GateResult(gate.text, True, False, (lines[0].text, *more))
    names = [*dict.fromkeys(line.name for line in lines)]
    some = ", ".join(names[:MOST_NAMES])
    some += f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    count = f" ({len(lines)} figures)" if gate.case else ""
    return GateResult(gate.text, True, False, (f"{gate.text} holds for {some}{count}", *more))


def _compare(gate: Gate, value: float | str, figure: Figure | None) -> tuple[bool | None, str]:
    """Whether the gate holds for a figure, None if nobody can say, and how to show the figure."""
    compare = OPERATORS[gate.operator]
    if figure is None:
        return None, "missing"
    if isinstance(figure, tuple):
        count, of = figure
        if not isinstance(value, str):
            return compare(count, value), f"{count} of {of}"
        if of == 0:  # none of no cases would be all of them
            return False, "0 of 0 (nothing was compared)"
        return compare(count, of), f"{count} of {of}"
    if isinstance(value, str) or math.isnan(figure):
        return None, "not a number" if math.isnan(figure) else "not counted"
    holds, short = compare(figure, value), f"{figure:.4g}"
    # Rounded, a close figure would seem to say the opposite.
    return holds, short if compare(float(short), value) == holds else repr(float(figure))


def _better(gate: Gate, key: str, lower: Collection[str]) -> str:
    """Which way is better."""
    if gate.figure == "score":
        down = key.partition(".")[2] in lower
    else:
        down = gate.figure in LOWER_IS_BETTER
    return "lower is better" if down else "higher is better"


def _number(figure: Figure | None) -> float:
    if isinstance(figure, tuple):
        return float(figure[0])
    return math.nan if figure is None else figure


def _known(figure: Figure | None) -> bool:
    return isinstance(figure, tuple) or not math.isnan(_number(figure))


def _in_case(key: str) -> bool:
    name, dot, _ = key.partition(".")
    return bool(dot) and name in CASE_FIGURES


def _elsewhere(gate: Gate, known: Mapping[str, Collection[str]]) -> str:
    """A hint for whoever asks of a protocol what only methods have, or the reverse."""
    other = next(kind for kind in KINDS if kind != gate.kind)
    if gate.subject not in known.get(other, ()):
        return ""
    return (
        f" ({gate.subject} is a {other}, and {gate.figure} a figure of {gate.kind}s; "
        f"figures of {other}s: {', '.join(KINDS[other])})"
    )
