"""The types of a comparison of two reports; `comparing` makes one, `changes` shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from attrcheck.report.types import Counts

Kind: TypeAlias = Literal["better", "worse", "unclear", "unpaired", "lost", "gained", "same"]
KINDS: dict[Kind, str] = {
    "better": "image by image, the 95% interval of the difference is on the better side of zero",
    "worse": "image by image, the 95% interval of the difference is on the worse side of zero",
    "unclear": "the 95% interval of the difference contains zero",
    "unpaired": "no interval, as there are no scores of single images to pair",
    "lost": "only the old report has a score",
    "gained": "only the new report has a score",
    "same": "the scores are the same",
}
"""What became of a method in a case."""
SCHEMA = 1
DIGITS = 9


@dataclass(frozen=True)
class Side:
    """One of the two reports: where it is from, when its run started, and how much it has."""

    name: str
    started: str
    cases: int
    methods: int


@dataclass(frozen=True)
class Difference:
    """A setting or a version that is not the same in both; what was not there is empty."""

    what: str
    old: str
    new: str


@dataclass(frozen=True)
class Refusal:
    """A case that both reports have, and why it is not compared."""

    case: str
    reason: str


@dataclass(frozen=True)
class Change:
    """What became of a method's score in a case; see KINDS.

    difference: new minus old. low, high: the 95% interval of the mean paired difference over
    `images` images. higher_is_better: of the case. old_rank, new_rank: within the case, among
    what is compared. reason: why there is no score, where one is lost.
    """

    case: str
    method: str
    kind: Kind
    higher_is_better: bool
    old: float | None = None
    new: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    images: int = 0
    old_rank: float | None = None
    new_rank: float | None = None
    reason: str = ""

    @property
    def size(self) -> float:
        """Of the difference, without its sign and what is rounding."""
        return round(abs(self.difference or 0.0), DIGITS)


@dataclass(frozen=True)
class Standing:
    """A method's place among what is compared; the figures are those of `types.BoardEntry`."""

    meta_rank: float
    rank: int
    mean_rank: float
    wins: float | None
    beats_random: Counts


@dataclass(frozen=True)
class BoardChange:
    """A method's places in both; counts: in how many cases what became of its scores, see KINDS.

    low, high: the 95% interval of the difference, from the same samples of dataset x model pairs
    and images in both; None where no case has scores of images to pair, or nothing changed.
    """

    method: str
    old: Standing
    new: Standing
    difference: float
    counts: dict[str, int]
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Two reports compared.

    cases, methods: those that are compared. board: fused anew over these alone, best in the new
    report first; Meta-Rank is relative to the competitors, so one report's own figures would not
    do. changes: of the scores that are not the same. refused: cases that are not compared at all.
    unscored: cases whose ranks are compared, but not their scores. differences: of settings and
    versions that do not forbid a comparison.
    """

    schema: int
    old: Side
    new: Side
    differences: list[Difference]
    cases: list[str]
    methods: list[str]
    refused: list[Refusal]
    unscored: list[Refusal]
    only_old_cases: list[str]
    only_new_cases: list[str]
    only_old_methods: list[str]
    only_new_methods: list[str]
    board: list[BoardChange]
    board_problem: str
    changes: list[Change] = field(default_factory=list)

    def of(self, method: str, *kinds: Kind) -> list[Change]:
        """The changes of a method, of these kinds, the largest first."""
        some = [c for c in self.changes if c.method == method and (not kinds or c.kind in kinds)]
        return sorted(some, key=lambda change: (-change.size, change.case))

    @property
    def nothing(self) -> bool:
        """Whether there is nothing to compare."""
        return not (self.cases and self.methods)
