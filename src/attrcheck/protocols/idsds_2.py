"""In-domain single deletion on a 2x2 grid."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._in_domain import in_domain
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("idsds_2", default=False)
def idsds_2(profile: str = "full") -> SingleDeletion:
    """As `idsds`, with 4 cells."""
    return in_domain(profile, grid=2)
