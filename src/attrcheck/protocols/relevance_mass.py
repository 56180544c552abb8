"""Relevance mass accuracy, or attr%: how much of a map lies where the truth is."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from attrcheck.protocols import protocol
from attrcheck.protocols._truth import GroundTruth


@dataclass(frozen=True)
class RelevanceMass(GroundTruth):
    """Positive attribution inside the mask over positive attribution (Arras et al. 2022)."""

    def compare(self, maps: Tensor, masks: Tensor, seeds: tuple[int, ...]) -> Tensor:
        """Undefined for a map without positive values."""
        positive = maps.clamp(min=0)
        return (positive * masks).sum((1, 2)) / positive.sum((1, 2))


@protocol("relevance_mass")
def relevance_mass() -> RelevanceMass:
    """The share of positive attribution that lies inside the mask; higher is better."""
    return RelevanceMass()
