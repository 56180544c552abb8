"""Incremental deletion, as in the IDSDS paper: least relevant first in 32 steps."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._ablation import Ablation

STEPS = 32
IMAGES = {"default": 20}
"""Images a case by profile; all where none is given."""


@protocol("ids")
def ids(profile: str = "full") -> Ablation:
    """Mean probability of the label over removed fractions k / 32, k = 0 .. 31; higher is better.

    The map is that of the intact image.
    """
    return Ablation(
        most_relevant_first=False,
        higher_is_better=True,
        at=tuple(range(STEPS)),
        of=STEPS,
        measure="probability",
        area="mean",
        most_images=IMAGES.get(profile),
    )
