"""In-domain single deletion (Hesse et al. 2024)."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._in_domain import in_domain
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("idsds")
def idsds(profile: str = "full") -> SingleDeletion:
    """As `sds`, on the model fine-tuned so that a deleted cell is in its domain."""
    return in_domain(profile)
