"""In-domain single deletion on an 8x8 grid."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._in_domain import in_domain
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("idsds_8", default=False)
def idsds_8(profile: str = "full") -> SingleDeletion:
    """As `idsds`, with 64 cells."""
    return in_domain(profile, grid=8)
