"""A protocol that prefers maps that know nothing of the model does not measure explanations."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._rankings import is_dummy, scores
from attrcheck.contracts import Case, Lab, Verdict

MOST = 0.5
"""Above this share, a dummy outranks a method more often than not."""


@check("dummy_floor", over="cases")
def dummy_floor(lab: Lab, case: Case) -> Verdict:
    """The share of comparisons that a dummy wins against a method: the case's unreliability.

    The reason names, passed or not, which dummy outranks which methods.
    """
    evaluation = lab.evaluation(case)
    score = scores(evaluation.protocol, evaluation.rows())
    dummies = [name for name in score if is_dummy(name)]
    methods = [name for name in score if not is_dummy(name)]
    if not dummies or not methods:
        return Verdict(None, {}, "there is no dummy, or no other method, to compare")
    outranked = {
        dummy: [name for name in methods if score[dummy] > score[name]] for dummy in dummies
    }
    ties = sum(score[dummy] == score[name] for dummy in dummies for name in methods)
    unreliability = (sum(map(len, outranked.values())) + ties / 2) / (len(dummies) * len(methods))
    figures = {
        "unreliability": unreliability,
        **{f"outranked_by_{dummy}": len(names) for dummy, names in outranked.items()},
    }
    details = [
        f"{dummy} outranks {', '.join(names)}" for dummy, names in outranked.items() if names
    ]
    reason = "; ".join([f"dummies win {unreliability:.0%} of their comparisons", *details])
    return Verdict(unreliability <= MOST, figures, reason)
