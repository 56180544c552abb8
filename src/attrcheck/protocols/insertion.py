"""Insertion as RISE has it (Petsiuk et al. 2018)."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._ablation import Ablation

IMAGES = {"default": 40}
"""Images a case by profile; all where none is given."""


@protocol("insertion")
def insertion(profile: str = "full") -> Ablation:
    """Onto a blurred image, most relevant first: area under the label's probability.

    Higher is better. What has not been inserted is what least relevant first removes, so the
    curve is that of removal, read from its end. RISE blurs 224 pixels by a sigma of 5, which would
    hide nothing in images as small as the embedded ones: the blur here is `blur`, a strong one.
    """
    return Ablation(
        most_relevant_first=False,
        higher_is_better=True,
        removal="blur",
        measure="probability",
        most_images=IMAGES.get(profile),
    )
