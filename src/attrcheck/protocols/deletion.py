"""Deletion as RISE has it (Petsiuk et al. 2018)."""

from __future__ import annotations

from attrcheck.protocols import protocol
from attrcheck.protocols._ablation import Ablation


@protocol("deletion")
def deletion() -> Ablation:
    """Most relevant first: area under the label's probability; lower is better.

    The rows are those of `morf`, in tenths: only what is made of them differs. RISE itself takes
    the class that the model predicts, and a step for each row of pixels.
    """
    return Ablation(most_relevant_first=True, higher_is_better=False, measure="probability")
