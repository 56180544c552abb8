"""What a case, a check or a law came to, and the envelope in which it crosses to the controller."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attrcheck.contracts import Over, Precision, Weights
from attrcheck.engine.wire import LOCAL
from attrcheck.errors import cut

Status: TypeAlias = Literal["ok", "undefined", "not_applicable", "error"]
CheckStatus: TypeAlias = Literal["passed", "failed", "known_failure", "finding", "not_applicable"]
"""A finding is a failure of a protocol on a user's own data: nobody's fault, so shown and counted,
but no reason for a run to fail."""


LawKind: TypeAlias = Literal["protocol", "removal", "method", "fusion"]
LawStatus: TypeAlias = Literal["held", "broken", "not_applicable"]


def _nothing() -> NDArray[np.float32]:
    return np.empty(0, dtype=np.float32)


@dataclass(frozen=True)
class Curve:
    """The curve behind a score; a point without a value is None."""

    x: list[float | None]
    y: list[float | None]

    @classmethod
    def of(cls, axes: tuple[Sequence[float], Sequence[float]] | None) -> Curve | None:
        """The curve of a reduction, where there is one."""
        if axes is None:
            return None
        return cls(*([_point(value) for value in axis] for axis in axes))


def _point(value: float) -> float | None:
    """A value in seven digits: curves and figures are to look at, and fill half of a report."""
    return float(f"{value:.7g}") if math.isfinite(value) else None


@dataclass(frozen=True)
class Score:
    """How one method did in one case, as reports show it.

    reason: why it has no score, where it has none. low, high: the 95% interval. constant_maps: how
    many of its maps are constant. undefined_images: how many images the score leaves out. passes:
    forward and backward passes per image of the `attribution` (as the method states) and of the
    `observation` (as counted), without what methods share. fingerprint: of the key of its record,
    which covers all that decides the rows that are scored.
    """

    status: Status
    reason: str = ""
    score: float | None = None
    low: float | None = None
    high: float | None = None
    curve: Curve | None = None
    constant_maps: int = 0
    undefined_images: int = 0
    passes: dict[str, list[float]] = field(default_factory=dict)
    fingerprint: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", cut(str(self.reason)))


@dataclass(frozen=True)
class Outcome(Score):
    """How one method did in one case, and what only the fusion needs.

    replicates: the score on each resample of the images, empty where there is no score; it stays in
    the process that computed it. beats_random: whether the interval of the paired difference to
    `random` excludes zero, None where they are not to be compared. seconds: per image, to
    attribute. image_scores: of the first images, where the score is their mean. curve_errors:
    standard errors of the values of the curve.
    """

    replicates: NDArray[np.float64] = field(default_factory=lambda: np.empty(0), metadata=LOCAL)
    beats_random: bool | None = None
    seconds: float | None = None
    image_scores: NDArray[np.float32] = field(default_factory=_nothing)
    curve_errors: NDArray[np.float32] = field(default_factory=_nothing)


@dataclass(frozen=True)
class Provenance:
    """Where scores come from, for those of one kind.

    stored: whether the store had their records. versions: of what computed these. created: when
    that was, by case and method.
    """

    stored: bool
    versions: dict[str, str]
    created: dict[str, dict[str, str]]


@dataclass(frozen=True)
class CaseResult:
    """One case: what was ranked, over how many images, and the outcome of every method.

    tuning: the facts of the model's fine-tuning, where it had one. settled: the protocol's settings
    that the methods of the run decided. data, weights: fingerprints of the images that are scored
    and of the model's weights, so that runs can be compared. problems: writes that failed.
    standings: `tallies.standings` of the methods on each resample, [resamples, methods] in the
    order of the outcomes; `resampling.condense` makes them. provenance: of its scores. caveats:
    what a reader must know of the images and the model.
    """

    case: str
    higher_is_better: bool
    images: int
    accuracy: float
    outcomes: dict[str, Outcome]
    protocol_settings: dict[str, Any] = field(default_factory=dict)
    tuning: dict[str, Any] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    data: str = ""
    weights: str = ""
    standings: NDArray[Any] = field(default_factory=lambda: np.empty((0, 0), dtype=np.uint8))
    provenance: list[Provenance] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class CheckResult:
    """What a check found of one subject.

    on: the pair that a method was checked on. protocol: the one that the subject is about, if any.
    known: why it is known to fail, if it is. reason: of the status.
    """

    check: str
    over: Over
    subject: str
    status: CheckStatus
    figures: dict[str, Any]
    on: str = ""
    protocol: str = ""
    known: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", cut(str(self.reason)))
        object.__setattr__(self, "known", cut(self.known))


@dataclass(frozen=True)
class LawResult:
    """Whether a law held for one subject, in `examples` scenes that hypothesis invented.

    reason: of the status. scene: the simplest in which it is broken. seed: from which hypothesis
    draws that one again.
    """

    kind: LawKind
    subject: str
    law: str
    status: LawStatus
    reason: str = ""
    scene: str = ""
    examples: int = 0
    seed: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", cut(str(self.reason)))
        object.__setattr__(self, "scene", cut(self.scene))


@dataclass(frozen=True)
class MethodFacts:
    """What is known of a method without running it.

    own: neither built in nor made by a prefix. dummy: ignores the model. passes: forward and
    backward, per image. definition: in one line. axioms: those that it claims to keep, and within
    what relative error. seeded: whether it draws random numbers, from a seed for each image.
    """

    family: str = "own"
    own: bool = False
    dummy: bool = False
    passes: list[int] = field(default_factory=list)
    reference: str = ""
    definition: str = ""
    axioms: dict[str, float] = field(default_factory=dict)
    seeded: bool = False


@dataclass(frozen=True)
class RunSettings:
    """The settings of a run that decide its results, as every item of it has them.

    images: of each case; None takes all. of_cases, of_methods: how many the profile runs unasked,
    or the suite has. suite: the paper's selection that was asked for. gaps: what it needs that is
    not there. facts: of the methods that could be loaded. weights: what weighs alike on the board.
    families: of the protocols, by name. precision: of the predictors.
    """

    profile: str
    images: int | None
    seed: int
    device: str
    methods: list[str]
    of_cases: int
    of_methods: int
    suite: str = ""
    gaps: list[str] = field(default_factory=list)
    facts: dict[str, MethodFacts] = field(default_factory=dict)
    weights: Weights = "equal"
    families: dict[str, str] = field(default_factory=dict)
    precision: Precision = "float32"


@dataclass(frozen=True)
class Exhibit:
    """Some images of a pair and the maps of its methods there, small enough to look at.

    positions: of the images in the dataset. labels, predictions: classes, by name where they have
    one. probabilities: of the labels. images: [images, height, width, channels]. maps: [methods,
    images, height, width], each divided by its largest absolute value; that, [methods, images], is
    in `scales`. full: whether there are files in full size, see `engine.pictures`.
    """

    pair: str
    ids: list[str]
    positions: list[int]
    labels: list[str]
    predictions: list[str]
    probabilities: list[float]
    methods: list[str]
    images: NDArray[np.uint8]
    maps: NDArray[np.int8]
    scales: NDArray[np.float32]
    full: bool = False


@dataclass(frozen=True)
class Delivery:
    """What one of several tasks has done of a case.

    shards: how many of the case's shards, `of` in all, are its own. records: of these, one for
    each method that applies; `stored` of them were in the store. errors: of methods that failed,
    and writes that failed.
    """

    case: str
    shards: int
    of: int
    records: int = 0
    stored: int = 0
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Envelope:
    """What an item sends to the controller: the result of a case, a check or a law, or a delivery.

    id: the item's, without its test. whole: tells the cases and methods that the profile runs
    unasked from any other selection. threads: those of the process. verified: entries of the store
    that were computed again and compared, if that was asked for. keys: of the user's own methods,
    as this process has them. exhibit: of the pair, from the first case of it in each process.
    """

    id: str
    settings: RunSettings
    whole: str
    threads: int
    case: CaseResult | None = None
    check: CheckResult | None = None
    verified: int | None = None
    keys: dict[str, str] = field(default_factory=dict)
    exhibit: Exhibit | None = None
    delivery: Delivery | None = None
    law: LawResult | None = None


def join(parts: Iterable[Provenance]) -> list[Provenance]:
    """The provenance of many scores, with one part for each kind."""
    kinds: dict[tuple[bool, tuple[tuple[str, str], ...]], dict[str, dict[str, str]]] = {}
    for part in parts:
        created = kinds.setdefault((part.stored, tuple(sorted(part.versions.items()))), {})
        for case, methods in part.created.items():
            created.setdefault(case, {}).update(methods)
    return [Provenance(kind[0], dict(kind[1]), created) for kind, created in sorted(kinds.items())]


def plain_figures(figures: Mapping[str, Any]) -> dict[str, Any]:
    """Figures of a check as JSON can hold them, in seven digits: what is not a number is None."""

    def plain(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if isinstance(value, Mapping):
            return {name: plain(item) for name, item in value.items()}
        return _point(float(value))

    return {cut(str(name)): plain(value) for name, value in figures.items()}
