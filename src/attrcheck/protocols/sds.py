"""Single deletion: one cell of a 4x4 grid at a time becomes the dataset's mean."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("sds")
def sds() -> SingleDeletion:
    """Rank correlation of the cells' attributions with the drops of the logit; higher is better."""
    return SingleDeletion()
