"""A ranking must not hang on which images were drawn."""

from __future__ import annotations

from attrcheck.checks import check
from attrcheck.checks._rankings import alike, first, scores
from attrcheck.contracts import Case, Lab, Verdict


@check(
    "half_images",
    over="cases",
    known_failures={
        "soundness": "12 of 16 embedded cases fail: it wants more than the 50 images of a half",
        "ids_updated": "halves of five images: two embedded cases of 16 fail",
        "insertion": "one embedded case of 16 fails: on an easy model a blurred image is enough",
    },
)
def half_images(lab: Lab, case: Case) -> Verdict:
    """Both halves of the images rank the methods alike; no pass of the model."""
    evaluation = lab.evaluation(case)
    rows = evaluation.rows()
    halves = [first(rows, slice(start, evaluation.images, 2)) for start in (0, 1)]
    if evaluation.images < 2:
        return Verdict(None, {}, "one image has no halves")
    one, other = (scores(evaluation.protocol, half) for half in halves)
    return alike("with the other half of the images", rank_correlation=(one, other))
