"""Incremental deletion with a new map at every step, as in the IDSDS paper (Hesse et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attrcheck.contracts import Batch, Rows
from attrcheck.protocols import protocol
from attrcheck.protocols.ablation import IDS_STEPS, Ablation
from attrcheck.protocols.order import least, most, pixel_counts, ranks_of
from attrcheck.protocols.responses import Answers, answers, stacked
from attrcheck.removal import removal as removals

STEPS = {"smoke": 4, "default": 4}
IMAGES = {"smoke": 4, "default": 10}
"""By profile; all steps and images where none are given: a step costs a map of every method."""


@dataclass(frozen=True)
class Updated(Ablation):
    """Ablation in which the map of what is left decides what goes next; what is gone stays gone."""

    @property
    def observation(self) -> str:
        """Not the rows of a fixed map."""
        return f"updated.{super().observation}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Responses [N, steps] at every removed fraction."""
        assert batch.attribute is not None, "the engine provides the method that is scored"
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        pick, first = (most, torch.inf) if self.most_relevant_first else (least, -torch.inf)
        gone = torch.zeros_like(maps, dtype=torch.bool)
        steps: list[Rows | Answers] = []
        images = batch.images
        known = {0: batch.intact, self.of: shared}
        for k, count in zip(self.at, pixel_counts(maps[0].numel(), self.at, self.of), strict=True):
            if k in known:
                steps.append(known[k])
                continue
            values = maps if images is batch.images else batch.attribute(images)
            gone = pick(ranks_of(values.masked_fill(gone, first), batch.seeds), count)
            images = remove(~gone)
            steps.append(answers(model, images, batch.labels))
        return stacked(steps)


@protocol("ids_updated")
def ids_updated(profile: str = "full") -> Updated:
    """As `ids`, but with a new map of what is left at every step; higher is better."""
    steps = STEPS.get(profile, IDS_STEPS)
    return Updated(
        most_relevant_first=False,
        higher_is_better=True,
        at=tuple(range(steps)),
        of=steps,
        measure="probability",
        area="mean",
        most_images=IMAGES.get(profile),
    )
