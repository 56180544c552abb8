"""In-domain single deletion with a blurred cell."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._in_domain import in_domain
from attrcheck.protocols._single_deletion import SingleDeletion


@protocol("idsds_blur", default=False)
def idsds_blur(profile: str = "full") -> SingleDeletion:
    """As `idsds`, but a deleted cell is blurred."""
    return in_domain(profile, removal="blur")
