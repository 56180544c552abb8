"""A map must say something about the class that it was asked for."""

from __future__ import annotations

from dataclasses import replace

from attrcheck.attribution import attribute_batch
from attrcheck.checks import Verdict, check
from attrcheck.checks._similarity import rank_correlation
from attrcheck.loading import Setup
from attrcheck.methods import Method

IMAGES = 8
ALIKE = 0.99
"""Rank correlation above which two maps are the same for all purposes."""


@check("target_sensitivity")
def target_sensitivity(method: Method, setup: Setup) -> Verdict:
    """The map for the label differs from the map for another class."""
    part = slice(0, IMAGES)
    others = replace(setup, labels=(setup.labels + 1) % setup.dataset.classes)
    likeness = rank_correlation(
        attribute_batch(method, setup, part, seed=0), attribute_batch(method, others, part, seed=0)
    )
    reason = f"maps for two classes have a rank correlation of {likeness:.3f}, above {ALIKE}"
    figures = {"rank_correlation": likeness}
    return Verdict(likeness <= ALIKE, figures, reason if likeness > ALIKE else "")
