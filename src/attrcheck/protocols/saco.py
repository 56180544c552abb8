"""Salience-guided faithfulness coefficient: do more salient groups of pixels matter more?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows
from attrcheck.protocols import protocol
from attrcheck.protocols.order import pixel_counts, ranks_of, sums_from
from attrcheck.protocols.responses import Answers, answers, stacked
from attrcheck.removal import removal as removals
from attrcheck.tensors.transfers import exact

TIE = 1e-9
"""Relative to a map's largest group: means of equal pixels differ by rounding alone."""


@dataclass(frozen=True)
class Saco(Protocol):
    """Pixels in `groups` of falling salience; every pair of groups votes (Wu et al. 2024).

    With s_i the mean salience of group i and d_i what the model's probability of the label falls by
    without it, a pair i < j votes for the map, with weight s_i - s_j, if d_i >= d_j, else against
    it. The score of an image is the sum of the votes over that of their weights, in [-1, 1]; higher
    is better. A map whose groups are all alike has none.
    """

    groups: int = 10
    removal: str = "mean"
    measure: str = "probability"
    most_images: int | None = None
    higher_is_better = True
    bounds = (-1.0, 1.0)

    @property
    def observation(self) -> str:
        """All settings but those of the reduction."""
        return f"saco.{self.removal}.{self.groups}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Salience [N, groups], and responses, the intact image first, [N, 1 + groups]."""
        values, ranks = exact(maps), ranks_of(maps, batch.seeds)
        pixels = ranks[0].numel()
        ends = pixel_counts(pixels, tuple(range(self.groups, -1, -1)), self.groups)
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        steps: list[Rows | Answers] = [batch.intact]
        for end, start in pairwise(ends):
            gone = (ranks >= start) & (ranks < end)
            steps.append(answers(model, remove(~gone.to(batch.images.device)), batch.labels))
        sizes = values.new_tensor([max(end - start, 1) for end, start in pairwise(ends)])
        return stacked(steps, salience=sums_from(values, ranks, ends).diff(dim=1) / sizes)

    def reduce(self, rows: Rows) -> Reduction:
        """The votes of all pairs, image by image."""
        values = rows[self.measure].astype(np.float64)
        drops, salience = values[:, :1] - values[:, 1:], rows["salience"].astype(np.float64)
        within = TIE * np.abs(salience).max(axis=1)
        votes = weights = np.zeros(len(values))
        for one, other in combinations(range(self.groups), 2):
            weight = salience[:, one] - salience[:, other]
            weight = np.where(weight > within, weight, 0.0)
            votes = votes + np.where(drops[:, one] >= drops[:, other], weight, -weight)
            weights = weights + weight
        with np.errstate(invalid="ignore"):
            return Reduction.mean(votes / weights)


@protocol("saco", default=False)
def saco() -> Saco:
    """Do groups of pixels of falling salience cost ever less probability? Higher is better."""
    return Saco()
