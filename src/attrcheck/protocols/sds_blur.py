"""Single deletion with a blurred cell."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("sds_blur", default=False)
def sds_blur() -> SingleDeletion:
    """As `sds`, but a deleted cell is blurred."""
    return SingleDeletion(removal="blur")
