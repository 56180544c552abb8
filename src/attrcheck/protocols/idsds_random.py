"""In-domain single deletion with a cell of noise."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._in_domain import in_domain
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("idsds_random", default=False)
def idsds_random(profile: str = "full") -> SingleDeletion:
    """As `idsds`, but a deleted cell becomes U(-1, 1)."""
    return in_domain(profile, removal="uniform")
