"""Ablation in order: remove ever more pixels, ranked by a map, and watch the model."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.fingerprint import digest, of_code
from attrcheck.outcomes import outcome
from attrcheck.protocols import Batch, Protocol, Reduction, Rows
from attrcheck.removal import removal as removals


@dataclass(frozen=True)
class Ablation(Protocol):
    """Area under accuracy against the removed fraction k / steps, k = 0 .. steps; in [0, 1].

    The intact and the fully removed image need no map: all methods share them.
    """

    most_relevant_first: bool
    higher_is_better: bool
    removal: str = "mean"
    steps: int = 10

    @property
    def shared_key(self) -> str:
        """Both orders end alike."""
        return f"ablation.{self.removal}"

    @property
    def code(self) -> str:
        """The removal is found by name, so its code is added here."""
        return digest(super().code, of_code(removals.get(self.removal).remove))

    def shared(self, model: nn.Module, batch: Batch) -> Rows:
        """Outcomes with everything removed."""
        keep = torch.zeros_like(batch.images[:, :1], dtype=torch.bool)
        return outcome(model, removals.get(self.removal).remove(batch.images, keep), batch.labels)

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Outcomes [N, steps + 1] at every removed fraction."""
        remove = removals.get(self.removal).remove
        ranks = removal_ranks(-maps if self.most_relevant_first else maps, batch.seeds)
        inner = [
            outcome(model, remove(batch.images, (ranks >= count)[:, None]), batch.labels)
            for count in pixel_counts(ranks[0].numel(), self.steps)[1:-1]
        ]
        every = [batch.intact, *inner, shared]
        return {name: np.stack([each[name] for each in every], axis=1) for name in shared}

    def reduce(self, rows: Rows) -> Reduction:
        """Trapezoid over accuracies, summed in whole numbers so that equal areas are equal."""
        correct = rows["correct"].astype(np.int64)
        doubled = 2 * correct.sum(axis=1) - correct[:, 0] - correct[:, -1]
        n, points = correct.shape
        fractions = [k / (points - 1) for k in range(points)]
        return Reduction(
            score=int(doubled.sum()) / (2 * (points - 1) * n),
            curve=(fractions, [int(count) / n for count in correct.sum(axis=0)]),
            per_image=doubled / (2 * (points - 1)),
        )


def pixel_counts(pixels: int, steps: int) -> list[int]:
    """How many pixels are removed at each step: pixels * k / steps, rounded half up, exactly."""
    return [(2 * pixels * k + steps) // (2 * steps) for k in range(steps + 1)]


def removal_ranks(maps: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """The place [N, H, W] at which each pixel goes, smallest first, ties in a seeded order.

    A pixel is gone after n removals if its rank is below n, so that removed sets are nested.
    """
    flat = maps.flatten(1) + 0.0  # turns -0.0 into 0.0, which some sorts tell apart
    pixels = flat.shape[1]
    shuffle = _shuffles(seeds, pixels).to(flat.device)
    order = shuffle.gather(1, flat.gather(1, shuffle).argsort(dim=1, stable=True))
    places = torch.arange(pixels, device=flat.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places).view_as(maps)


@functools.lru_cache(maxsize=16)
def _shuffles(seeds: tuple[int, ...], pixels: int) -> Tensor:
    """One permutation an image; kept, since all methods break ties alike."""
    orders = [np.random.default_rng(seed).permutation(pixels) for seed in seeds]
    return torch.from_numpy(np.stack(orders))
