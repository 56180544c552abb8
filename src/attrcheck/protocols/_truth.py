"""Ground truth: does a map point at what decides the class? No pass of the model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attrcheck.contracts import Batch, Need, Protocol, Reduction, Rows
from attrcheck.errors import AttrcheckError
from attrcheck.tensors.precision import exact


@dataclass(frozen=True)
class GroundTruth(Protocol):
    """The mean over images of a score in [0, 1] of a map against a mask; higher is better.

    A map for which the score is not defined has none, and so has one of an image whose mask is
    empty; they are counted.
    """

    higher_is_better = True
    bounds = (0.0, 1.0)
    needs: tuple[Need, ...] = ("masks",)

    @abstractmethod
    def compare(self, maps: Tensor, masks: Tensor, seeds: tuple[int, ...]) -> Tensor:
        """The score [N] of maps against masks, both [N, H, W]; NaN where there is none."""

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The score of each image."""
        if batch.masks is None:
            raise AttrcheckError("the dataset has no masks to compare maps with")
        maps = exact(maps)
        masks = batch.masks.bool().to(maps.device)
        scores = self.compare(maps, masks, batch.seeds).double()
        return {"score": scores.masked_fill(~masks.any(2).any(1), torch.nan).cpu().numpy()}

    def reduce(self, rows: Rows) -> Reduction:
        """The mean over the images that have a score."""
        return Reduction.mean(rows["score"])
