"""The types of the report: what `report.json` holds, each defined once; see `report.schema.json`.

Those of a result are in `engine.results`, of agreement in `consistency`, of gates in `gate`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from attrcheck.consistency import Consistency
from attrcheck.engine.results import CheckResult, LawResult, Provenance, RunSettings, Score
from attrcheck.gate import GateResult


@dataclass(frozen=True)
class Run:
    """All that differs from run to run though results are the same.

    gates_from: where the gates in force were given; `none` if there are none. verified: entries of
    the store that were computed again and compared, if that was asked for.
    """

    started: str
    seconds: float
    gates_from: str
    workers: int
    threads: int | None
    cores: int
    machine: str
    python: str
    versions: dict[str, str]
    seconds_per_image: dict[str, float | None] = field(default_factory=dict)
    verified: int | None = None
    provenance: list[Provenance] = field(default_factory=list)


@dataclass(frozen=True)
class SettingsShown(RunSettings):
    """The settings of the run; `partial` if it is another selection than that of the profile."""

    partial: bool = field(kw_only=True)


@dataclass(frozen=True)
class ScoreEntry(Score):
    """How one method did in one case, its rank there, 1 the best, and whether it beats `random`.

    beats_random: whether the interval of the paired difference excludes zero, None where they are
    not to be compared.
    """

    rank: float | None = None
    beats_random: bool | None = None


@dataclass(frozen=True)
class CaseEntry:
    """One case, and how every method did in it.

    caveats: what a reader must know of the images and the model. settled: the protocol's settings
    that the methods of the run decided. data, weights: fingerprints of the images that are scored
    and of the model's weights; cases are compared where these are the same.
    """

    id: str
    dataset: str
    model: str
    protocol: str
    higher_is_better: bool
    images: int
    accuracy: float
    protocol_settings: dict[str, Any]
    tuning: dict[str, Any]
    scores: dict[str, ScoreEntry]
    caveats: list[str] = field(default_factory=list)
    settled: list[str] = field(default_factory=list)
    data: str = ""
    weights: str = ""


@dataclass(frozen=True)
class Counts:
    """In how many cases of how many."""

    cases: int
    of: int


@dataclass(frozen=True)
class BoardEntry:
    """One method on the leaderboard; see `gate.METHOD_FIGURES` for what the figures mean.

    letters: methods that share one are not told apart. best, worst: the places that it may have.
    """

    method: str
    meta_rank: float
    low: float | None
    high: float | None
    rank: int
    mean_rank: float
    wins: float | None
    beats_random: Counts
    letters: str = ""
    best: int | None = None
    worst: int | None = None


@dataclass(frozen=True)
class Separation:
    """Which methods are told apart, at 95% for all pairs at once; docs/explanation/statistics.md.

    pairs: dataset x model pairs that were resampled; of a single one, only its images were.
    critical: how many standard errors a difference must have, for methods that took part in all
    pairs. margins: row k has, for the k-th method of the board and each one above it, half the
    width of the interval of the difference of their Meta-Ranks; None where nothing could tell them
    apart. problem: why there is nothing here.
    """

    pairs: int = 0
    critical: float | None = None
    margins: list[list[float | None]] = field(default_factory=list)
    problem: str = ""


@dataclass(frozen=True)
class Pairwise:
    """How often each method beats each other one, and the logits that were fused.

    residual: the share of the logits that one scale leaves unexplained.
    """

    methods: list[str] = field(default_factory=list)
    probability: list[list[float | None]] = field(default_factory=list)
    logit: list[list[float | None]] = field(default_factory=list)
    residual: float | None = None


@dataclass(frozen=True)
class FamilyBoard:
    """The board of the cases of one family of protocols, without intervals.

    places: of each method that has a score there, by name: its place and its Meta-Rank.
    problem: why the cases could not be fused, if so.
    """

    family: str
    protocols: list[str]
    cases: int
    places: dict[str, list[float]] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Tally:
    """The items of one check of one protocol: the mean figure, and how many passed of how many."""

    figure: float | None
    passed: int
    decided: int
    known_failures: int


@dataclass(frozen=True)
class ProtocolTrust:
    """How far a protocol is to be trusted: the share of items passed, mean over its checks."""

    protocol: str
    cases: int
    trust: float | None
    checks: dict[str, Tally]


@dataclass(frozen=True)
class Failure:
    """A check that a method failed, where and why."""

    check: str
    on: str
    reason: str


@dataclass(frozen=True)
class MethodVerdict:
    """How a method did in its checks; `decided` are those that passed or failed."""

    method: str
    passed: int
    decided: int
    failures: list[Failure]
    known_failures: list[Failure]
    not_applicable: int


@dataclass(frozen=True)
class Document:
    """The whole report.

    missing: items that were collected and sent no result. leaderboard_problem: why the cases could
    not be fused, if so. protocol_verdicts: the one to trust most first. method_verdicts: in the
    order of the board. baseline: what moved against a report that the run was compared with, in a
    few lines; `comparison.json` has all of it. families: boards of families of protocols, where
    there are several.
    """

    schema: int
    run: Run
    settings: SettingsShown
    missing: list[str]
    cases: list[CaseEntry]
    leaderboard: list[BoardEntry]
    leaderboard_problem: str
    pairwise: Pairwise
    consistency: Consistency
    protocol_verdicts: list[ProtocolTrust]
    method_verdicts: list[MethodVerdict]
    checks: list[CheckResult]
    gates: list[GateResult]
    baseline: list[str] = field(default_factory=list)
    separation: Separation = Separation()
    families: list[FamilyBoard] = field(default_factory=list)
    laws: list[LawResult] = field(default_factory=list)
