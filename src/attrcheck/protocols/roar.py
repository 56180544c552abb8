"""RemOve And Retrain: even a network that never saw what matters should miss it (ROAR)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Retraining, Rows
from attrcheck.protocols import protocol
from attrcheck.protocols.order import most, pixel_counts, ranks_of
from attrcheck.protocols.responses import answers, stacked, standard_errors
from attrcheck.removal import removal as removals

BRIEF: dict[str, dict[str, Any]] = {
    "smoke": {"at": (5,), "training_images": 300, "epochs": 2},
    "default": {"at": (5, 9)},
}
"""Settings of the profiles that take less than all."""


@dataclass(frozen=True)
class Roar(Protocol):
    """Accuracy of networks that are trained and tested without the top tenths of every map.

    One network per method and fraction, all from the same initial weights.
    """

    at: tuple[int, ...] = (1, 3, 5, 7, 9)
    training_images: int = 3000
    epochs: int = 8
    removal: str = "mean"
    higher_is_better = False
    bounds = (0.0, 1.0)
    sees = "order"
    needs = ("training", "architecture")

    def retrain(self, retraining: Retraining) -> nn.Module:
        """One network per fraction."""
        ranks = ranks_of(retraining.maps, retraining.seeds)
        left = self._without(retraining.images, ranks, retraining.seeds)
        return nn.ModuleList(retraining.train(images, self.epochs) for images in left)

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Responses [N, fractions], each of the network that learnt without as much."""
        assert isinstance(model, nn.ModuleList)
        left = self._without(batch.images, ranks_of(maps, batch.seeds), batch.seeds)
        return stacked(
            answers(network, images, batch.labels)
            for network, images in zip(model, left, strict=True)
        )

    def reduce(self, rows: Rows) -> Reduction:
        """The mean accuracy over the fractions."""
        right = rows["correct"].astype(np.int64)
        curve = [k / 10 for k in self.at], (right.sum(axis=0) / len(right)).tolist()
        score = right.sum().item() / right.size
        return Reduction(score, curve, right.mean(axis=1), errors=standard_errors(right))

    def _without(self, images: Tensor, ranks: Tensor, seeds: tuple[int, ...]) -> list[Tensor]:
        """The images without the top of their maps, for each fraction."""
        remove = removals.get(self.removal).of(images, seeds)
        counts = pixel_counts(ranks[0].numel(), self.at, 10)
        return [remove(~most(ranks, count)) for count in counts]


@protocol(
    "roar",
    default=False,
)
def roar(profile: str = "full") -> Roar:
    """Accuracy of networks retrained without what matters, one per method; lower is better."""
    return Roar(**BRIEF.get(profile, {}))
