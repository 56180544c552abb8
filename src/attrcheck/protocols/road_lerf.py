"""Least relevant first, removed pixels imputed from their neighbours (ROAD, Rong et al. 2022)."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._ablation import Ablation
from attrcheck.protocols._road import AT, IMAGES


@protocol("road_lerf")
def road_lerf(profile: str = "full") -> Ablation:
    """As `lerf`, but what is removed is imputed from its neighbours; higher is better."""
    return Ablation(
        most_relevant_first=False,
        higher_is_better=True,
        removal="noisy_linear",
        at=AT,
        most_images=IMAGES.get(profile),
    )
