"""A judge that prefers what knows nothing of the model is no judge of explanations."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._rankings import is_dummy, scores
from attrcheck.contracts import Case, Lab, Verdict

MOST = 0.5
"""Above this share, a dummy outranks a method more often than not."""


@check(
    "dummy_floor",
    over="cases",
    known_failures={
        "completeness": "a threshold takes more from a map that is large in many pixels, and the "
        "ranking follows the maps' mean value (.57): dummies win 69% over the embedded cases",
        "road_morf": "holes of a smooth map cannot be imputed from neighbours, and the ranking "
        "follows the maps' autocorrelation (.60): dummies win 42% over the embedded cases",
        "soundness": "one embedded case of 16 fails: 100 images tell methods hardly apart",
    },
)
def dummy_floor(lab: Lab, case: Case) -> Verdict:
    """The share of comparisons that a dummy wins against a method: the case's unreliability.

    The reason names, passed or not, which dummy outranks which methods.
    """
    evaluation = lab.evaluation(case)
    found = scores(evaluation.protocol, evaluation.rows())
    dummies = [name for name in found if is_dummy(name)]
    methods = [name for name in found if not is_dummy(name)]
    if not dummies or not methods:
        return Verdict(None, {}, "there is no dummy, or no other method, to compare")
    lost = {name: [m for m in methods if found[name] > found[m]] for name in dummies}
    ties = sum(found[d] == found[m] for d in dummies for m in methods)
    unreliability = (sum(map(len, lost.values())) + ties / 2) / (len(dummies) * len(methods))
    figures = {
        "unreliability": unreliability,
        **{f"outranked_by_{name}": len(beaten) for name, beaten in lost.items()},
    }
    told = [f"{name} outranks {', '.join(beaten)}" for name, beaten in lost.items() if beaten]
    reason = "; ".join([f"dummies win {unreliability:.0%} of their comparisons", *told])
    return Verdict(unreliability <= MOST, figures, reason)
