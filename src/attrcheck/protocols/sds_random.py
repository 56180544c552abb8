"""Single deletion with a cell of noise."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("sds_random", default=False)
def sds_random() -> SingleDeletion:
    """As `sds`, but a deleted cell becomes U(-1, 1)."""
    return SingleDeletion(removal="uniform")
