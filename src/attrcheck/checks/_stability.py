"""The verdict on two rankings of the same methods that should be alike."""

from __future__ import annotations

import math

from attrcheck.checks import Verdict
from attrcheck.consistency import LEAST_METHODS, WEAK
from attrcheck.lab import Scores, agreement


def alike(what: str, **rankings: tuple[Scores, Scores]) -> Verdict:
    """Passed unless the rank correlation of any pair is weak; named by what was changed."""
    figures = {name: agreement(*pair) for name, pair in rankings.items()}
    known = {name: value for name, value in figures.items() if not math.isnan(value)}
    if not known:
        return Verdict(None, {}, f"fewer than {LEAST_METHODS} methods have a score in both")
    weak = {name: value for name, value in known.items() if value < WEAK}
    told = ", ".join(f"{value:.2f} ({name.replace('_', ' ')})" for name, value in weak.items())
    reason = f"{what}, methods are ranked anew: rank correlation {told}, below {WEAK}"
    return Verdict(not weak, known, reason if weak else "")
