"""Ablation in order: remove ever more pixels, ranked by a map, and watch the model."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows, Shared
from attrcheck.protocols._order import least, most, pixel_counts, ranks_of
from attrcheck.protocols.responses import responses
from attrcheck.removal import removal as removals
from attrcheck.store.fingerprints import digest

Measure: TypeAlias = Literal["correct", "probability", "logit"]

TENTHS = tuple(range(11))


@dataclass(frozen=True)
class Emptied(Shared):
    """Outcomes with every pixel removed, where every order ends."""

    removal: str

    @property
    def key(self) -> str:
        """One entry a removal."""
        return f"emptied.{self.removal}"

    def observe(self, model: nn.Module, batch: Batch) -> Rows:
        """Outcomes with nothing kept."""
        keep = torch.zeros_like(batch.images[:, 0], dtype=torch.bool)
        empty = removals.get(self.removal)(batch.images, keep, seeds=batch.seeds)
        return responses(model, empty, batch.labels)


@dataclass(frozen=True)
class Ablation(Protocol):
    """Area under a measure of the model against the removed fractions k / of, for k in `at`.

    measure: accuracy (`correct`), or the label's `probability` or `logit`. The area is that of
    trapezoids, divided by the width of the fractions, or the plain `mean` over them; so it lies in
    [0, 1], logits aside. The intact and the fully removed image need no map: methods share them.
    """

    most_relevant_first: bool
    higher_is_better: bool
    removal: str = "mean"
    at: tuple[int, ...] = TENTHS
    of: int = 10
    measure: Measure = "correct"
    area: Literal["trapezoid", "mean"] = "trapezoid"
    most_images: int | None = None
    sees = "order"

    @property
    def bounds(self) -> tuple[float, float]:  # type: ignore[override]
        """Those of the measure."""
        return (-inf, inf) if self.measure == "logit" else (0.0, 1.0)

    @property
    def shared(self) -> Emptied | None:
        """Both orders end alike."""
        return Emptied(self.removal) if self.of in self.at else None

    @property
    def observation(self) -> str:
        """All but what becomes of the rows."""
        order = "morf" if self.most_relevant_first else "lerf"
        steps = digest(self.at, self.of) if self.at != tuple(range(self.of + 1)) else self.of
        return f"{order}.{self.removal}.{steps}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Outcomes [N, steps] at every removed fraction."""
        ranks = ranks_of(maps, batch.seeds)
        gone = most if self.most_relevant_first else least
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        known = {0: batch.intact, self.of: shared}
        counts = pixel_counts(ranks[0].numel(), self.at, self.of)
        every = [
            known[k] if k in known else responses(model, remove(~gone(ranks, count)), batch.labels)
            for k, count in zip(self.at, counts, strict=True)
        ]
        return {name: np.stack([each[name] for each in every], axis=1) for name in batch.intact}

    def reduce(self, rows: Rows) -> Reduction:
        """Accuracies are summed in whole numbers, so that equal areas are equal."""
        kind = np.int64 if self.measure == "correct" else np.float64
        values = rows[self.measure].astype(kind)
        weights, total = self._weights()
        areas = values @ weights
        n = len(values)
        return Reduction(
            score=areas.sum().item() / (total * n),
            curve=([k / self.of for k in self.at], [x.item() / n for x in values.sum(axis=0)]),
            per_image=areas.astype(np.float64) / total,
        )

    def _weights(self) -> tuple[NDArray[np.int64], int]:
        """What each step counts in the area, in whole numbers, and the sum of it."""
        if self.area == "mean":
            return np.ones(len(self.at), dtype=np.int64), len(self.at)
        widths = np.diff(self.at)
        weights = np.concatenate([widths, [0]]) + np.concatenate([[0], widths])
        return weights, int(weights.sum())
