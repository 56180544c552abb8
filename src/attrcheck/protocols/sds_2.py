"""Single deletion on a 2x2 grid."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("sds_2", default=False)
def sds_2() -> SingleDeletion:
    """As `sds`, with 4 cells."""
    return SingleDeletion(grid=2)
