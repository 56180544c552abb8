"""Gates: rules such as `my_method.meta_rank >= 0` that hold or break; `deciding` says which."""

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
"""By name of a method or a protocol, and then of the figure; in a single case, of `figure.case`."""

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
CASE_FIGURES = {
    "score": "score of the method in a case; which way is better, its protocol says",
    "rank": "rank of the method within a case, 1 the best",
}
"""Figures of methods that a case stands behind: `my_method.score.digits-resnet-morf`."""
LOWER_IS_BETTER = ("rank", "mean_rank", "dummy_floor")
"""Of all others but `score`, higher is better."""
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
BASELINE = "baseline"
"""What a value may be told from: the same figure of an earlier report."""

_SPLIT = re.compile(r"([^<>=]*?)\s*([<>=!]=|[<>])\s*(.*)", re.DOTALL)
_SUBJECT = re.compile(r"[A-Za-z0-9_.:*?\[\]!-]+")
_CASE = re.compile(r"[A-Za-z0-9_.:*?\[\]!@/+-]+")
_IN_CASE = re.compile(rf"(.+?)\.({'|'.join(CASE_FIGURES)})\.(.+)", re.DOTALL)
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
_OFFSET = re.compile(rf"{BASELINE}\s*(?:([+-])\s*([0-9.].*))?")


class GateSyntaxError(ValueError):
    """A gate that cannot be read; the message names it, the fault and an example."""

    def __init__(self, text: str, problem: str) -> None:
        super().__init__(text, problem)
        self.text = text
        self.problem = problem

    def __str__(self) -> str:
        return (
            f"gate {self.text!r}: {self.problem}; write name.figure, a comparison and a value, "
            "e.g. 'my_method.meta_rank >= 0'"
        )


@dataclass(frozen=True)
class Gate:
    """One gate: every method, or protocol, that matches `subject`, a glob, has such a `figure`.

    case: a glob, if it is about single cases. baseline: whether `value` is to be added to the
    figure of the baseline.
    """

    text: str
    subject: str
    figure: str
    operator: str
    value: float | Literal["all"]
    case: str = ""
    baseline: bool = False

    @property
    def kind(self) -> str:
        """What the gate is about, by its figure: `method` or `protocol`."""
        return "protocol" if self.figure in PROTOCOL_FIGURES else "method"

    def about(self, name: str) -> bool:
        """Whether it is about a method or protocol of this name."""
        return fnmatch.fnmatchcase(name, self.subject)

    def reads(self, figure: str) -> bool:
        """Whether it is about a figure, of all cases or of one, as `score.digits-resnet-morf`."""
        if not self.case:
            return figure == self.figure
        name, _, case = figure.partition(".")
        return name == self.figure and fnmatch.fnmatchcase(case, self.case)

    @property
    def key(self) -> str:
        """The figure as it is written."""
        return f"{self.figure}.{self.case}" if self.case else self.figure

    @property
    def wanted(self) -> str:
        """The value as it is written, but for spaces."""
        if not self.baseline:
            return self.value if self.value == "all" else repr(self.value).removesuffix(".0")
        offset = float(self.value)
        size = repr(abs(offset)).removesuffix(".0")
        return f"{BASELINE} {'-' if offset < 0 else '+'} {size}" if offset else BASELINE


@dataclass(frozen=True)
class GateResult:
    """Whether a gate held, and why; `error` where that could not be decided, never a pass.

    rule: the text of the gate. broken: the methods or protocols that broke it.
    """

    rule: str
    passed: bool
    error: bool
    lines: tuple[str, ...]
    broken: tuple[str, ...] = ()


def parse(text: str) -> Gate:
    """Read a gate, or raise GateSyntaxError."""
    text = text.strip()
    split = _SPLIT.fullmatch(text)
    if split is None:
        raise GateSyntaxError(text, f"it has no comparison, one of {' '.join(OPERATORS)}")
    left, comparison, right = split.groups()
    subject, _, figure = left.rpartition(".")
    case = ""
    if figure not in FIGURES and (in_case := _IN_CASE.fullmatch(left)):
        subject, figure, case = in_case.groups()
    if not subject:
        raise GateSyntaxError(text, f"{left!r} is not a name, a dot and a figure ({_figures()})")
    if not _SUBJECT.fullmatch(subject):
        raise GateSyntaxError(text, f"{subject!r} is neither a name nor a glob")
    if case and not _CASE.fullmatch(case):
        raise GateSyntaxError(text, f"{case!r} is neither a case nor a glob")
    if not case and figure in CASE_FIGURES and figure not in FIGURES:
        raise GateSyntaxError(text, f"{figure!r} needs a case: {left}.digits-resnet-morf")
    if not case and figure not in FIGURES:
        hint = suggest(figure, FIGURES, most=1)
        hint = hint if hint.startswith("did") else _figures()
        raise GateSyntaxError(text, f"there is no figure {figure!r} ({hint})")
    if from_baseline := _OFFSET.fullmatch(right):
        sign, size = from_baseline.groups()
        offset = _number(text, size) if size else 0.0
        value = -offset if sign == "-" else offset
        return Gate(text, subject, figure, comparison, value, case, baseline=True)
    return Gate(text, subject, figure, comparison, _value(text, figure, comparison, right), case)


def _figures() -> str:
    kinds = [f"figures of {kind}s: {', '.join(names)}" for kind, names in KINDS.items()]
    return f"{'; '.join(kinds)}; in a single case: {', '.join(CASE_FIGURES)}"


def _value(text: str, figure: str, comparison: str, right: str) -> float | Literal["all"]:
    if right == "all":
        if figure not in COUNTED:
            raise GateSyntaxError(text, f"'all' fits only what is counted: {', '.join(COUNTED)}")
        if comparison not in ALL_OPERATORS:
            raise GateSyntaxError(text, f"'all' goes with {' or '.join(ALL_OPERATORS)} only")
        return "all"
    return _number(text, right)


def _number(text: str, right: str) -> float:
    if not _NUMBER.fullmatch(right):
        raise GateSyntaxError(
            text, f"{right!r} is neither a number nor 'all' nor 'baseline', 'baseline - 0.1'"
        )
    if math.isinf(value := float(right)):
        raise GateSyntaxError(text, f"{right!r} is too large")
    return value
