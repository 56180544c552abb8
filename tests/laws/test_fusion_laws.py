"""Every law of the fusion holds for Meta-Rank, and catches a fusion that breaks it."""

from dataclasses import replace

import numpy as np
import pytest

from attrcheck import metarank
from attrcheck.laws.fusion import Scores, laws_of
from attrcheck.laws.strategies import tables
from attrcheck.laws.trying import BrokenLawError, Effort, attempt

LAWS = {law.__name__.removeprefix("law_"): law for law in laws_of(metarank.fuse)}


def hold(fuse, law):
    attempt(lambda scores: LAWS[law](fuse, scores), tables(), Effort(100, seed=0))


def changed(change):
    """The fusion, with its scale changed by what it knows of the scores."""

    def fuse(scores, **options):
        fused = metarank.fuse(scores, **options)
        return replace(fused, kappa=change(fused.kappa, np.asarray(scores)))

    return fuse


@pytest.mark.parametrize("law", LAWS)
def test_meta_rank_obeys_the_law(law):
    hold(metarank.fuse, law)


@pytest.mark.parametrize(
    ("law", "change", "says"),
    [
        ("meta_ranks_sum_to_zero", lambda kappa, scores: kappa + 1, "sum to 2"),
        (
            "the_order_of_methods_does_not_count",
            lambda kappa, scores: kappa + np.arange(len(kappa)),
            "methods in reverse order",
        ),
        (
            "the_order_of_cases_does_not_count",
            lambda kappa, scores: kappa + scores[0],
            "cases in reverse order",
        ),
        (
            "only_ranks_within_a_case_count",
            lambda kappa, scores: kappa + scores.mean(0),
            "after a transform",
        ),
        (
            "reversing_every_case_reverses_the_board",
            lambda kappa, scores: kappa + 1,
            "all scores negated",
        ),
        (
            "who_wins_everywhere_is_first",
            lambda kappa, scores: -kappa,
            "the winner of every case has",
        ),
    ],
)
def test_each_law_catches_its_culprit(law, change, says):
    with pytest.raises(BrokenLawError, match=says) as caught:
        hold(changed(change), law)
    assert caught.value.scene.startswith("Scores(rows=((")


def test_directions_count():
    scores = Scores(rows=((1, 2), (2, 1)), higher=(True, False))
    assert scores.upward.tolist() == [[1, 2], [-2, -1]]
    assert scores.scale(metarank.fuse)[1] > 0
