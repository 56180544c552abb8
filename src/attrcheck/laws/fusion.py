"""What holds for the fusion of rankings: each law is a function of it and of a table of scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from attrcheck.metarank import MetaRank

Fuse: TypeAlias = Callable[..., MetaRank]
CLOSE = 1e-8


@dataclass(frozen=True)
class Scores:
    """Whole numbers as scores of methods in cases, one row per case, and where more is better."""

    rows: tuple[tuple[int, ...], ...]
    higher: tuple[bool, ...]

    @cached_property
    def table(self) -> NDArray[np.float64]:
        """[cases, methods]."""
        return np.array(self.rows, dtype=np.float64)

    def scale(self, fuse: Fuse, table: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """The Meta-Ranks of these scores, or of others in the same cases."""
        scores = self.table if table is None else table
        return fuse(scores, higher_is_better=list(self.higher)).kappa

    @property
    def upward(self) -> NDArray[np.float64]:
        """The scores with the better ones higher in every case."""
        return np.where(np.array(self.higher)[:, None], self.table, -self.table)


Law: TypeAlias = Callable[[Fuse, Scores], None]


def laws_of(fuse: Fuse) -> Iterator[Law]:
    """The laws of a fusion."""
    yield law_meta_ranks_sum_to_zero
    yield law_the_order_of_methods_does_not_count
    yield law_the_order_of_cases_does_not_count
    yield law_only_ranks_within_a_case_count
    yield law_reversing_every_case_reverses_the_board
    yield law_who_wins_everywhere_is_first


def law_meta_ranks_sum_to_zero(fuse: Fuse, scores: Scores) -> None:
    """Zero is the average method."""
    total = float(scores.scale(fuse).sum())
    assert abs(total) <= CLOSE, f"the Meta-Ranks sum to {total:.3g}"


def law_the_order_of_methods_does_not_count(fuse: Fuse, scores: Scores) -> None:
    """Methods in another order have the same Meta-Ranks."""
    turned = scores.scale(fuse, scores.table[:, ::-1])[::-1]
    _same(turned, scores.scale(fuse), "with the methods in reverse order")


def law_the_order_of_cases_does_not_count(fuse: Fuse, scores: Scores) -> None:
    """Cases in another order give the same Meta-Ranks."""
    turned = fuse(scores.table[::-1], higher_is_better=list(scores.higher)[::-1]).kappa
    _same(turned, scores.scale(fuse), "with the cases in reverse order")


def law_only_ranks_within_a_case_count(fuse: Fuse, scores: Scores) -> None:
    """Any strictly increasing transform of the scores of a case changes nothing."""
    bent = scores.table**3 + 7
    bent[::2] *= 1000
    _same(scores.scale(fuse, bent), scores.scale(fuse), "after a transform of the scores")


def law_reversing_every_case_reverses_the_board(fuse: Fuse, scores: Scores) -> None:
    """The best become the worst, as far below the average as they were above."""
    _same(-scores.scale(fuse, -scores.table), scores.scale(fuse), "with all scores negated")


def law_who_wins_everywhere_is_first(fuse: Fuse, scores: Scores) -> None:
    """A method that beats every other one in every case has the highest Meta-Rank."""
    best = scores.upward.max(axis=1, keepdims=True) + 1
    signs = np.where(scores.higher, 1, -1)[:, None]
    kappa = scores.scale(fuse, np.concatenate([scores.table, signs * best], axis=1))
    assert kappa[-1] > kappa[:-1].max(), f"the winner of every case has {_shown(kappa)}"


def _same(one: NDArray[np.float64], other: NDArray[np.float64], when: str) -> None:
    assert np.allclose(one, other, atol=CLOSE), f"{_shown(other)} becomes {_shown(one)} {when}"


def _shown(kappa: Sequence[float] | NDArray[np.float64]) -> str:
    return "[" + ", ".join(f"{value:.3g}" for value in kappa) + "]"
