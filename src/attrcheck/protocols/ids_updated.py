"""Incremental deletion with a new map at every step, as in the IDSDS paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.outcomes import outcome
from attrcheck.protocols import Batch, Rows, protocol
from attrcheck.protocols._ablation import Ablation
from attrcheck.protocols._order import least, pixel_counts, ranks_of
from attrcheck.removal import removal as removals

STEPS = {"smoke": 4, "default": 4}
IMAGES = {"smoke": 4, "default": 10}
"""By profile; 32 steps and all images where none is given: a step costs a map of every method."""


@dataclass(frozen=True)
class Updated(Ablation):
    """Ablation in which the map of what is left decides what goes next; what is gone stays gone."""

    @property
    def observation(self) -> str:
        """Not the rows of a fixed map."""
        return f"updated.{super().observation}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Outcomes [N, steps] at every removed fraction; the first one is the intact image."""
        assert batch.attribute is not None, "the engine offers the method on trial"
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        gone = torch.zeros_like(maps, dtype=torch.bool)
        every = [batch.intact]
        images = batch.images
        for count in pixel_counts(maps[0].numel(), self.at, self.of)[1:]:
            values = maps if images is batch.images else batch.attribute(images)
            gone = least(ranks_of(values.masked_fill(gone, -torch.inf), batch.seeds), count)
            images = remove(~gone)
            every.append(outcome(model, images, batch.labels))
        return {name: np.stack([each[name] for each in every], axis=1) for name in batch.intact}


@protocol("ids_updated")
def ids_updated(profile: str = "full") -> Updated:
    """As `ids`, but the map is drawn anew on what is left, step by step; higher is better."""
    steps = STEPS.get(profile, 32)
    return Updated(
        most_relevant_first=False,
        higher_is_better=True,
        at=tuple(range(steps)),
        of=steps,
        measure="probability",
        area="mean",
        most_images=IMAGES.get(profile),
    )
