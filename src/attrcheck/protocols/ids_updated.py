"""Incremental deletion with a new map at every step, as in the IDSDS paper."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.contracts import Batch, Rows
from attrcheck.protocols import protocol
from attrcheck.protocols._ablation import Ablation
from attrcheck.protocols._order import least, most, pixel_counts, ranks_of
from attrcheck.protocols.responses import responses
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
        """Outcomes [N, steps] at every removed fraction."""
        assert batch.attribute is not None, "the engine offers the method on trial"
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        pick, first = (most, torch.inf) if self.most_relevant_first else (least, -torch.inf)
        gone = torch.zeros_like(maps, dtype=torch.bool)
        every = []
        images = batch.images
        known = {0: batch.intact, self.of: shared}
        for k, count in zip(self.at, pixel_counts(maps[0].numel(), self.at, self.of), strict=True):
            if k in known:
                every.append(known[k])
                continue
            values = maps if images is batch.images else batch.attribute(images)
            gone = pick(ranks_of(values.masked_fill(gone, first), batch.seeds), count)
            images = remove(~gone)
            every.append(responses(model, images, batch.labels))
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
