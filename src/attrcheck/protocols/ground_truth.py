"""Ground truth: does a map point at what decides the class? No pass of the model."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attrcheck.contracts import Batch, Need, Protocol, Reduction, Rows
from attrcheck.errors import AttrcheckError
from attrcheck.protocols import protocol
from attrcheck.protocols.order import most, ranks_of
from attrcheck.tensors.transfers import exact


@dataclass(frozen=True)
class GroundTruth(Protocol):
    """The mean over images of a score in [0, 1] of a map against a mask; higher is better.

    An image has no score where that of its map is undefined, or where its mask is empty; such
    images are counted.
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


@dataclass(frozen=True)
class RelevanceMass(GroundTruth):
    """Positive attribution inside the mask over positive attribution (Arras et al. 2022).

    Also known as attr%.
    """

    def compare(self, maps: Tensor, masks: Tensor, seeds: tuple[int, ...]) -> Tensor:
        """Undefined for a map without positive values."""
        positive = maps.clamp(min=0)
        return (positive * masks).sum((1, 2)) / positive.sum((1, 2))


@dataclass(frozen=True)
class RelevanceRank(GroundTruth):
    """Of the K highest pixels, K the size of the mask, the share inside (Arras et al. 2022)."""

    sees = "order"

    def compare(self, maps: Tensor, masks: Tensor, seeds: tuple[int, ...]) -> Tensor:
        """As many pixels of each map as its mask has."""
        size = masks.sum((1, 2))
        highest = ranks_of(maps, seeds) >= maps[0].numel() - size[:, None, None]
        return (highest & masks).sum((1, 2)).double() / size


@dataclass(frozen=True)
class PointingGame(GroundTruth):
    """1 where the highest pixel is inside the mask, 0 where it is not (Zhang et al. 2018)."""

    sees = "order"

    def compare(self, maps: Tensor, masks: Tensor, seeds: tuple[int, ...]) -> Tensor:
        """Ties for the highest pixel are broken by the image's seed."""
        return (most(ranks_of(maps, seeds), 1) & masks).sum((1, 2))


@protocol("relevance_mass")
def relevance_mass() -> RelevanceMass:
    """The share of positive attribution that lies inside the mask; higher is better."""
    return RelevanceMass()


@protocol("relevance_rank")
def relevance_rank() -> RelevanceRank:
    """The share of the highest pixels, as many as the mask has, inside it; higher is better."""
    return RelevanceRank()


@protocol("pointing_game")
def pointing_game() -> PointingGame:
    """The share of images whose highest pixel lies inside the mask; higher is better."""
    return PointingGame()
