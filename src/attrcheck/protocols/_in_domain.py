"""Single deletion on models for which a deleted cell is nothing new (Hesse et al. 2024)."""

from __future__ import annotations

from attrcheck.contracts import Tuning
from attrcheck.protocols._single_deletion import SingleDeletion

IMAGES = {"default": 20}
"""Images a case by profile; all where none is given: a fine-tuned model wants its own maps."""


def in_domain(profile: str, grid: int = 4, removal: str = "mean") -> SingleDeletion:
    """Single deletion on the model, fine-tuned with cells of the same grid and baseline deleted."""
    return SingleDeletion(
        grid, removal, tuning=Tuning(grid, removal), most_images=IMAGES.get(profile)
    )
