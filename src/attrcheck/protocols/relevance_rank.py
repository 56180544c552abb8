"""Relevance rank accuracy: how many of the highest pixels lie where the truth is."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attrcheck.protocols import protocol
from attrcheck.protocols._order import ranks_of
from attrcheck.protocols._truth import GroundTruth


@dataclass(frozen=True)
class RelevanceRank(GroundTruth):
    """Of the K highest pixels, K the size of the mask, the share inside (Arras et al. 2022)."""

    sees = "order"

    def compare(self, maps: Tensor, masks: Tensor, seeds: tuple[int, ...]) -> Tensor:
        """As many pixels of each map as its mask has."""
        size = masks.sum((1, 2))
        highest = ranks_of(maps, seeds) >= maps[0].numel() - size[:, None, None]
        return (highest & masks).sum((1, 2)).double() / size


@protocol("relevance_rank")
def relevance_rank() -> RelevanceRank:
    """The share of the highest pixels, as many as the mask has, inside it; higher is better."""
    return RelevanceRank()
