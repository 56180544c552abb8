"""The pointing game: whether a map is highest where the truth is."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attrcheck.protocols import protocol
from attrcheck.protocols._order import most, ranks_of
from attrcheck.protocols._truth import GroundTruth


@dataclass(frozen=True)
class PointingGame(GroundTruth):
    """1 where the highest pixel is inside the mask, 0 where it is not (Zhang et al. 2018)."""

    sees = "order"

    def compare(self, maps: Tensor, masks: Tensor, seeds: tuple[int, ...]) -> Tensor:
        """Ties for the highest pixel are broken by the image's seed."""
        return (most(ranks_of(maps, seeds), 1) & masks).sum((1, 2))


@protocol("pointing_game")
def pointing_game() -> PointingGame:
    """The share of images whose highest pixel lies inside the mask; higher is better."""
    return PointingGame()
