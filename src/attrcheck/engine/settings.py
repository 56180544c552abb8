"""What the profiles of a run mean, and what a machine has to offer it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the options of every pytest run import this module
    from attrcheck.contracts import Method

PROFILES: dict[str, int | None] = {"smoke": 8, "default": 100, "full": None}
"""Images of a case by profile; None takes all."""
BLOCK = 256
"""Images that shards are multiples of, by position; batches never cross the border of a block.

So batches, which floats depend on, are the same whatever the shards.
"""
AFFORDABLE = 40
"""Forward passes per image that a method may cost to run unasked, but in the profile full."""


def affords(method: Method) -> bool:
    """Whether a method runs unasked in any profile but full."""
    return method.cost <= AFFORDABLE if method.default is None else method.default


def cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
