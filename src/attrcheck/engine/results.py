"""What a case or a check came to, and the plain form in which it crosses to the controller."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attrcheck.contracts import Over

Status: TypeAlias = Literal["ok", "undefined", "not_applicable", "error"]
CheckStatus: TypeAlias = Literal["passed", "failed", "known_failure", "not_applicable"]


@dataclass(frozen=True)
class Outcome:
    """How one method did in one case; `reason` says why it has no score, where it has none.

    replicates: the score on each resample of the images, empty where there is no score.
    seconds: per image, to attribute. constant: how many of its maps are constant. undefined: how
    many images the score leaves out. passes: forward and backward, an image, of the attribution
    (as the method states) and of the observation (as counted), what methods share aside.
    """

    status: Status
    reason: str = ""
    score: float | None = None
    low: float | None = None
    high: float | None = None
    curve: tuple[list[float], list[float]] | None = None
    replicates: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    seconds: float | None = None
    constant: int = 0
    undefined: int = 0
    passes: dict[str, list[float]] = field(default_factory=dict)


@dataclass(frozen=True)
class CaseResult:
    """One case: what was ranked, over how many images, and every method's outcome.

    protocol: its settings. tuning: the facts of the model's fine-tuning, where it had one.
    """

    case: str
    higher_is_better: bool
    images: int
    accuracy: float
    outcomes: dict[str, Outcome]
    protocol: dict[str, Any] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it, exact to the bit."""
        outcomes = {
            name: {
                **vars(outcome),
                "replicates": _pack(outcome.replicates),
                "curve": outcome.curve and [_defined(axis) for axis in outcome.curve],
            }
            for name, outcome in self.outcomes.items()
        }
        return {**vars(self), "outcomes": outcomes}

    @classmethod
    def of(cls, plain: dict[str, Any]) -> CaseResult:
        """The inverse of `plain`."""
        outcomes = {
            name: Outcome(
                **{
                    **outcome,
                    "replicates": _unpack(outcome["replicates"]),
                    "curve": outcome["curve"] and tuple(outcome["curve"]),
                }
            )
            for name, outcome in plain["outcomes"].items()
        }
        return cls(**{**plain, "outcomes": outcomes})


@dataclass(frozen=True)
class CheckResult:
    """What a check found of one subject.

    on: the pair that a method was checked on. protocol: the one that the subject is about, if any.
    known: why it is known to fail, if it is. reason: of the status.
    """

    check: str
    over: Over
    subject: str
    on: str
    protocol: str
    known: str
    status: CheckStatus
    reason: str
    figures: dict[str, Any]


def plain_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a check as JSON can hold them: what is not a number is None."""

    def plain(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, Mapping):
            return {name: plain(item) for name, item in value.items()}
        number = float(value)
        return number if math.isfinite(number) else None

    return {name: plain(value) for name, value in figures.items()}


def _defined(values: list[float]) -> list[float | None]:
    """JSON knows no NaN."""
    return [value if np.isfinite(value) else None for value in values]


def _pack(values: NDArray[np.float64]) -> str:
    return base64.b64encode(values.astype("<f8").tobytes()).decode()


def _unpack(text: str) -> NDArray[np.float64]:
    return np.frombuffer(base64.b64decode(text), "<f8")
