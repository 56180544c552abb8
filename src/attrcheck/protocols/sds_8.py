"""Single deletion on an 8x8 grid."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("sds_8", default=False)
def sds_8() -> SingleDeletion:
    """As `sds`, with 64 cells."""
    return SingleDeletion(grid=8)
