"""Gates: rules such as `my_method.meta_rank >= 0` that hold or break; `decide` says which."""

from __future__ import annotations

import fnmatch
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from attrcheck.errors import suggest

Figure: TypeAlias = float | tuple[int, int]
"""A number, or for a counted figure how many of how many."""

Figures: TypeAlias = Mapping[str, Mapping[str, Figure | None]]
"""By name of a method or a protocol, and then of the figure."""

METHOD_FIGURES = {
    "meta_rank": "kappa, the method's place on the fused scale: 0 is the average method",
    "low": "lower end of the 95% interval of meta_rank",
    "high": "upper end of the 95% interval of meta_rank",
    "rank": "place on the board, 1 the best",
    "mean_rank": "mean of the method's ranks within the cases, 1 the best",
    "wins": "share of its pairwise comparisons that the method won, 0 to 1",
    "beats_random": "number of cases in which the 95% interval of the paired difference to "
    "`random` lies on the right side of zero",
    "checks": "number of checks that the method passed, of those that decided; a known failure, "
    "of a dummy too, is decided and not passed, what is not applicable does not count",
}
PROTOCOL_FIGURES = {
    "dummy_floor": "share of comparisons that dummies win against methods, mean over cases, 0 to 1",
    "measured_output": "rank correlation of measuring logits with measuring probabilities, mean "
    "over cases, -1 to 1",
    "attributed_output": "the same of explaining logits with explaining probabilities",
    "seed": "the same of two seeds",
    "half_images": "the same of the two halves of the images",
    "other_removal": "the same of two ways to remove pixels",
    "other_grid": "the same of two patch grids",
    "value_sensitivity": "least Hausdorff distance between the curves of a map and of copies with "
    "other values",
}
KINDS = {"method": METHOD_FIGURES, "protocol": PROTOCOL_FIGURES}
"""The figure says what a gate is about."""
FIGURES = {**METHOD_FIGURES, **PROTOCOL_FIGURES}
COUNTED = ("beats_random", "checks")
OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
ALL_OPERATORS = ("==", ">=")

_SPLIT = re.compile(r"([^<>=]*?)\s*([<>=!]=|[<>])\s*(.*)", re.DOTALL)
_SUBJECT = re.compile(r"[A-Za-z0-9_.:*?\[\]!-]+")
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)


class GateSyntaxError(ValueError):
    """A gate that cannot be read; the message names it, the fault, the figures and an example."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(text, problem)
        self.text = text
        self.problem = problem

    def __str__(self) -> str:
        kinds = [f"figures of {kind}s: {', '.join(names)}" for kind, names in KINDS.items()]
        return (
            f"gate {self.text!r}: {self.problem}. A rule is method.figure or protocol.figure, a "
            f"comparison and a value, e.g. 'my_method.meta_rank >= 0', 'my_method.checks == all' "
            f"or '*.dummy_floor <= 0.1'; {'; '.join(kinds)}"
        )


@dataclass(frozen=True)
class Gate:
    """One gate: every method, or protocol, that matches `subject`, a glob, has such a `figure`."""

    text: str
    subject: str
    figure: str
    operator: str
    value: float | Literal["all"]

    @property
    def kind(self) -> str:
        """What the gate is about, by its figure: `method` or `protocol`."""
        return next(kind for kind, figures in KINDS.items() if self.figure in figures)

    def select(self, figures: Figures) -> list[str]:
        """Those that the gate is about, in their order.

        Where several match, those that such a figure does not apply to are left out.
        """
        matching = [name for name in figures if fnmatch.fnmatchcase(name, self.subject)]
        return [name for name in matching if self.figure in figures[name]] or matching


@dataclass(frozen=True)
class GateResult:
    """Whether a gate held, and why; `error` where that could not be decided, never a pass.

    rule: the text of the gate.
    """

    rule: str
    passed: bool
    error: bool
    lines: tuple[str, ...]


def parse(text: str) -> Gate:
    """Read a gate, or raise GateSyntaxError."""
    text = text.strip()
    split = _SPLIT.fullmatch(text)
    if split is None:
        raise GateSyntaxError(text, f"it has no comparison, one of {' '.join(OPERATORS)}")
    left, comparison, right = split.groups()
    subject, _, figure = left.rpartition(".")
    if not subject:
        raise GateSyntaxError(text, f"{left!r} is not a name, a dot and a figure")
    if not _SUBJECT.fullmatch(subject):
        raise GateSyntaxError(text, f"{subject!r} is neither a name nor a glob")
    if figure not in FIGURES:
        hint = suggest(figure, FIGURES, most=1)
        raise GateSyntaxError(text, f"there is no figure {figure!r} ({hint})")
    return Gate(text, subject, figure, comparison, _value(text, figure, comparison, right))


def _value(text: str, figure: str, comparison: str, right: str) -> float | Literal["all"]:
    if right == "all":
        if figure not in COUNTED:
            raise GateSyntaxError(text, f"'all' fits only what is counted: {', '.join(COUNTED)}")
        if comparison not in ALL_OPERATORS:
            raise GateSyntaxError(text, f"'all' goes with {' or '.join(ALL_OPERATORS)} only")
        return "all"
    if not _NUMBER.fullmatch(right):
        raise GateSyntaxError(text, f"{right!r} is neither a number nor 'all'")
    if math.isinf(value := float(right)):
        raise GateSyntaxError(text, f"{right!r} is too large")
    return value


def decide(gate: Gate, known: Mapping[str, Figures]) -> GateResult:
    """Compare a gate with what is known of each `method` and `protocol`; it holds if all hold."""
    figures = known.get(gate.kind, {})
    chosen = gate.select(figures)
    if not chosen:
        line = f"no {gate.kind} matches {gate.subject!r}; {suggest(gate.subject, figures)}"
        return GateResult(gate.text, False, True, (line + _elsewhere(gate, known),))
    lines: dict[bool | None, list[str]] = {None: [], False: [], True: []}
    value = gate.value if gate.value == "all" else repr(gate.value).removesuffix(".0")
    for name in chosen:
        holds, shown = _compare(gate, figures[name].get(gate.figure))
        line = f"{name}.{gate.figure} is {shown}, wanted {gate.operator} {value}"
        if holds is None:
            have = [key for key, other in figures[name].items() if _known(other)]
            line += f"; {name} has: {', '.join(have) or 'no figures'}"
        lines[holds].append(line)
    if bad := (*lines[None], *lines[False]):
        return GateResult(gate.text, passed=False, error=bool(lines[None]), lines=bad)
    kept = lines[True] if len(chosen) == 1 else [f"{gate.text} holds for {', '.join(chosen)}"]
    return GateResult(gate.text, passed=True, error=False, lines=tuple(kept))


def _compare(gate: Gate, figure: Figure | None) -> tuple[bool | None, str]:
    """Whether the gate holds for a figure, None if nobody can say, and how to show the figure."""
    compare = OPERATORS[gate.operator]
    if figure is None:
        return None, "missing"
    if isinstance(figure, tuple):
        count, of = figure
        if gate.value != "all":
            return compare(count, gate.value), f"{count} of {of}"
        if of == 0:  # none of no cases would be all of them
            return False, "0 of 0 (nothing was compared)"
        return compare(count, of), f"{count} of {of}"
    if gate.value == "all" or math.isnan(figure):
        return None, "not a number" if math.isnan(figure) else "not counted"
    holds, short = compare(figure, gate.value), f"{figure:.4g}"
    # Rounded, a close figure would seem to say the opposite.
    return holds, short if compare(float(short), gate.value) == holds else repr(float(figure))


def _known(figure: Figure | None) -> bool:
    return isinstance(figure, tuple) or not (figure is None or math.isnan(figure))


def _elsewhere(gate: Gate, known: Mapping[str, Figures]) -> str:
    """A hint for whoever asks of a protocol what only methods have, or the reverse."""
    other = next(kind for kind in KINDS if kind != gate.kind)
    if gate.subject not in known.get(other, {}):
        return ""
    return (
        f" ({gate.subject} is a {other}, and {gate.figure} a figure of {gate.kind}s; "
        f"figures of {other}s: {', '.join(KINDS[other])})"
    )
