"""Most relevant first: take away what a map calls important."""

from __future__ import annotations

from attrcheck.protocols import ProtocolSpec, protocol
from attrcheck.protocols._ablation import Ablation
from attrcheck.removal import removal as removals


@protocol("morf")
def morf(removal: str = "mean") -> Ablation:
    """Accuracy should fall at once: lower is better."""
    return Ablation(most_relevant_first=True, higher_is_better=False, removal=removal)


def resolve(removal: str) -> ProtocolSpec:
    """`morf:blur` removes in another way."""
    known = removals.get(removal).name
    return ProtocolSpec(f"morf:{known}", lambda: morf(known))
