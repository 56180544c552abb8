"""Judges that see values stand out from those that see an order (Li et al. 2024)."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks import check as checks
from attrcheck.checks.value_sensitivity import ENOUGH, IMAGES
from attrcheck.contracts import Lab, Verdict

BY_VALUE = ("completeness", "soundness")
BY_ORDER = ("deletion", "road_morf")
ERRORS = 2
"""Standard errors on each side by which the lowest of the first must exceed the highest others."""


@check("value_margin", over="suite")
def value_margin(lab: Lab) -> Verdict:
    """Completeness and soundness are more sensitive to values than deletion and ROAD, beyond doubt.

    From what `value_sensitivity` found. The margin is the least of the first over the largest of
    the others: published, .183 over .019, almost ten.
    """
    found = {name: sensitivity(lab, name) for name in (*BY_VALUE, *BY_ORDER)}
    return verdict(found, IMAGES[lab.settings.profile])


def sensitivity(lab: Lab, protocol: str) -> tuple[float, float]:
    """The distance between curves, and its standard error."""
    figures = lab.verdict(checks.get("value_sensitivity"), protocol).figures
    return figures["hausdorff"], figures["error"]


def verdict(found: dict[str, tuple[float, float]], images: int) -> Verdict:
    """Whether the two groups are apart; chance alone moves the curves of a few images."""
    lowest = min(found[name][0] - ERRORS * found[name][1] for name in BY_VALUE)
    highest = max(found[name][0] + ERRORS * found[name][1] for name in BY_ORDER)
    least, most = min(found[n][0] for n in BY_VALUE), max(found[n][0] for n in BY_ORDER)
    figures = {"margin": least / most, **{name: each for name, (each, _) in found.items()}}
    if images < ENOUGH:
        return Verdict(None, figures, f"{images} images are too few to tell them apart")
    reason = f"by values at least {lowest:.3f}, by order at most {highest:.3f}"
    return Verdict(lowest > highest, figures, "" if lowest > highest else reason)
