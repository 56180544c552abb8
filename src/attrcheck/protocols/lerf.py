"""Least relevant first: take away what a map calls unimportant."""

from __future__ import annotations

from attrcheck.protocols import ProtocolSpec, protocol
from attrcheck.protocols._ablation import Ablation
from attrcheck.removal import removal as removals


@protocol("lerf")
def lerf(removal: str = "mean") -> Ablation:
    """Accuracy should hold as long as it can: higher is better."""
    return Ablation(most_relevant_first=False, higher_is_better=True, removal=removal)


def resolve(removal: str) -> ProtocolSpec:
    """`lerf:blur` removes in another way."""
    known = removals.get(removal).name
    return ProtocolSpec(f"lerf:{known}", lambda: lerf(known))
