"""The scores of a run as one table, and the boards that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attrcheck import metarank
from attrcheck.contracts import Case
from attrcheck.tallies import Tally, relative, tally, weighted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """The scores of a run, [cases, methods] with NaN where absent, and what follows from them.

    weights: of the cases; None: all weigh alike.
    """

    cases: Sequence[Case]
    methods: Sequence[str]
    scores: Floats
    higher_is_better: NDArray[np.bool_]
    tolerance: float = 0.0
    weights: Floats | None = None

    @cached_property
    def pairs(self) -> NDArray[np.bool_]:
        """Which methods have a score on which dataset x model, [pairs, methods]."""
        scored: dict[str, NDArray[np.bool_]] = {}
        for case, there in zip(self.cases, np.isfinite(self.scores), strict=True):
            scored[case.pair] = scored.get(case.pair, False) | there
        return np.array(list(scored.values()), dtype=bool).reshape(-1, len(self.methods))

    @cached_property
    def ranks(self) -> Floats:
        """[cases, methods], 1 is best, NaN where a method has no score."""
        rows = [
            metarank.case_ranks(row, higher_is_better=bool(up), tolerance=self.tolerance)
            for row, up in zip(self.scores, self.higher_is_better, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(self.scores.shape)

    @cached_property
    def by_weight(self) -> dict[float, Tally]:
        """Who beat whom in all cases of one weight."""
        factors = self._factors
        return {float(factor): self.tally(factors == factor) for factor in np.unique(factors)}

    @cached_property
    def _factors(self) -> Floats:
        size = len(self.cases)
        return relative(np.ones(size) if self.weights is None else self.weights, size)

    def board(self, left_out: Sequence[int] | NDArray[np.intp] = ()) -> Floats:
        """Places of the methods on the board, without some cases; see `metarank.board`.

        Tallies of one weight are counts, so that those of cases are taken away exactly.
        """
        parts = dict(self.by_weight)
        out = np.asarray(left_out, dtype=np.intp)
        for factor in np.unique(self._factors[out]):
            alike = out[self._factors[out] == factor]
            parts[float(factor)] = parts[float(factor)] - self.tally(alike)
        return metarank.board(weighted(parts.items()))

    def tally(self, kept: NDArray[Any] | Sequence[int] | slice = slice(None)) -> Tally:
        """Who beat whom in the cases kept, which weigh alike."""
        return tally(
            self.scores[kept],
            higher_is_better=self.higher_is_better[kept],
            tolerance=self.tolerance,
        )
