"""Most relevant first: take away what a map calls important."""

from __future__ import annotations

from attrcheck.protocols import ProtocolSpec, protocol
from attrcheck.protocols._ablation import Ablation


@protocol("morf")
def morf(removal: str = "mean") -> Ablation:
    """Accuracy should fall at once: lower is better."""
    return Ablation(most_relevant_first=True, higher_is_better=False, removal=removal)


def resolve(removal: str) -> ProtocolSpec:
    """`morf:blur` removes in another way."""
    return ProtocolSpec(f"morf:{removal}", lambda: morf(removal))
