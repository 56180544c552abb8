"""A ranking must not hang on whether the logit or its softmax is measured."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._rankings import alike, copy_with, has_setting, scores
from attrcheck.contracts import Case, Lab, Verdict


@check(
    "measured_output",
    over="cases",
    fits=lambda protocol: has_setting(protocol, "measure"),
    known_failures={"ids_updated": "ten images: one embedded case of 16 fails, with .59"},
)
def measured_output(lab: Lab, case: Case) -> Verdict:
    """Measuring logits ranks the methods as measuring probabilities does; no pass of the model."""
    evaluation = lab.evaluation(case)
    rows = evaluation.rows()
    one, other = (
        scores(copy_with(evaluation.protocol, measure=measure), rows)
        for measure in ("logit", "probability")
    )
    return alike("when the softmax is measured instead of the logit", rank_correlation=(one, other))
