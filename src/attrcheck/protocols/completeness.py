"""Completeness: how much of the accuracy goes with what a map calls salient (Li et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows
from attrcheck.protocols import protocol
from attrcheck.protocols.responses import Answers, answers, stacked, standard_errors
from attrcheck.protocols.values import Normalisation, normalised
from attrcheck.removal import removal as removals
from attrcheck.store.digests import digest

IMAGES = {"default": 40}
"""Images per case, by profile; all where none are given."""


@dataclass(frozen=True)
class Completeness(Protocol):
    """Mean over t = .9, .8, ... .1 of accuracy intact minus accuracy without pixels above t.

    Pixels whose normalised value is above t are imputed: relative to the map's maximum, as
    published, unless maps are only clipped. In [-1, 1], higher is better. Images whose normalised
    map is constant take no part.
    """

    tenths: tuple[int, ...] = tuple(range(9, 0, -1))
    normalisation: Normalisation = "max"
    removal: str = "noisy_linear"
    most_images: int | None = None
    higher_is_better = True
    bounds = (-1.0, 1.0)

    @property
    def observation(self) -> str:
        """All settings but those of the reduction."""
        return f"completeness.{self.removal}.{self.normalisation}.{digest(self.tenths)}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Responses [N, 1 + thresholds], the intact image first, and whether the map is defined."""
        values = normalised(maps, self.normalisation)
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        low = [(~(values > tenth / 10)).to(batch.images.device) for tenth in self.tenths]
        steps: list[Rows | Answers] = [
            batch.intact,
            *(answers(model, remove(keep), batch.labels) for keep in low),
        ]
        return stacked(steps, defined=values.isfinite().all(2).all(1))

    def reduce(self, rows: Rows) -> Reduction:
        """Accuracies are summed in whole numbers, so that equal scores are equal."""
        defined = rows["defined"].astype(bool)
        correct = rows["correct"][defined].astype(np.int64)
        n, missing = len(correct), int((~defined).sum())
        lost = correct[:, :1] - correct[:, 1:]
        per_image = np.full(len(defined), np.nan)
        per_image[defined] = lost.mean(axis=1)
        if not n:
            return Reduction(np.nan, per_image=per_image, undefined=missing)
        return Reduction(
            score=lost.sum().item() / lost.size,
            curve=([tenth / 10 for tenth in self.tenths], (lost.sum(axis=0) / n).tolist()),
            per_image=per_image,
            undefined=missing,
            errors=standard_errors(lost),
        )


@protocol("completeness")
def completeness(profile: str = "full") -> Completeness:
    """Accuracy lost with all pixels above a threshold, over nine of them; higher is better."""
    return Completeness(most_images=IMAGES.get(profile))
