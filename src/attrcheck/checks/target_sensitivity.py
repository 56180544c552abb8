"""A map must say something about the class that it was asked for."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._similarity import rank_correlation
from attrcheck.contracts import Method, Pair, Verdict

IMAGES = 8
ALIKE = 0.99
"""Rank correlation above which two maps are the same for all purposes."""


@check("target_sensitivity")
def target_sensitivity(method: Method, pair: Pair) -> Verdict:
    """The map for the label differs from the map for another class."""
    part = slice(0, IMAGES)
    others = pair.altered("targets", labels=(pair.labels + 1) % pair.dataset.classes)
    likeness = rank_correlation(
        pair.attribute(method, part, seed=0), others.attribute(method, part, seed=0)
    )
    reason = f"maps for two classes have a rank correlation of {likeness:.3f}, above {ALIKE}"
    figures = {"rank_correlation": likeness}
    return Verdict(likeness <= ALIKE, figures, reason if likeness > ALIKE else "")
