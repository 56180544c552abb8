import math
from dataclasses import replace

import numpy as np
import pytest

from attrcheck import metarank
from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, Curve, Outcome
from attrcheck.engine.wire import dumps
from attrcheck.report.document import build
from attrcheck.report.types import Counts
from tests.report.samples import RUN, check, settings

RNG = np.random.default_rng(0)
NOISE = RNG.normal(0, 0.01, size=(3, 50))


def scored(score, noise=0, seconds=0.5):
    """A score whose resamples scatter around it; None for an error."""
    if score is None:
        return Outcome("error", "it broke")
    replicates = score + NOISE[noise]
    low, high = float(replicates.min()), float(replicates.max())
    return Outcome(
        "ok",
        score=score,
        low=low,
        high=high,
        curve=Curve([0.0, 1.0], [1.0, score]),
        replicates=replicates,
        seconds=seconds,
        constant_maps=1,
    )


def result(case, scores, higher=True):
    """A case with these scores, given by method."""
    outcomes = {
        name: score if isinstance(score, Outcome) else scored(score, place % 3)
        for place, (name, score) in enumerate(scores.items())
    }
    return condense(CaseResult(case, higher, 8, 0.75, outcomes))


def document(*results, methods=None, **changes):
    """The document of a run with these results."""
    names = list(results[0].outcomes) if methods is None else methods
    given = {"checks": [], "missing": [], "run": RUN}
    return build(results=list(results), settings=settings(names), **(given | changes))


def board(document):
    return [entry.method for entry in document.leaderboard]


def entry(document, method):
    return next(entry for entry in document.leaderboard if entry.method == method)


@pytest.fixture
def three():
    """Three methods in two pairs and three cases, one of which is better when lower."""
    return [
        result("a-x-up", {"worst": 0.1, "middle": 0.5, "random": 0.3, "best": 0.9}),
        result("a-x-down", {"worst": 0.9, "middle": 0.4, "random": 0.5, "best": 0.1}, False),
        result("b-x-up", {"worst": 0.1, "middle": 0.2, "random": 0.3, "best": 0.8}),
    ]


def test_the_board_has_the_best_first_whatever_the_order_of_methods(three):
    names = ["worst", "middle", "random", "best"]
    found = document(*three)
    assert board(found)[0] == "best"
    assert board(found)[-1] == "worst"
    assert [entry.rank for entry in found.leaderboard] == [1, 2, 3, 4]
    ranks = [entry.meta_rank for entry in found.leaderboard]
    assert ranks == sorted(ranks, reverse=True)
    assert sum(ranks) == pytest.approx(0)
    assert board(document(*three, methods=names[::-1])) == board(found)


def test_an_entry_says_what_the_cases_say(three):
    best = entry(document(*three), "best")
    assert best.mean_rank == 1
    assert best.wins == 1
    assert best.low <= best.meta_rank <= best.high
    worst = entry(document(*three), "worst")
    assert worst.mean_rank == 4
    assert worst.wins == 0
    middle = entry(document(*three), "middle")
    assert middle.mean_rank == pytest.approx((2 + 2 + 3) / 3)
    assert middle.wins == pytest.approx((2 + 2 + 1) / 9)


def test_meta_ranks_are_those_of_the_fusion(three):
    found = document(*three)
    names = ["worst", "middle", "random", "best"]
    scores = [[case.outcomes[name].score for name in names] for case in three]
    fused = metarank.fuse(scores, higher_is_better=np.array([True, False, True]))
    for name, kappa in zip(names, fused.kappa, strict=True):
        assert entry(found, name).meta_rank == pytest.approx(kappa)
    assert found.pairwise.methods == names
    assert found.pairwise.residual == pytest.approx(fused.residual)
    np.testing.assert_allclose(found.pairwise.probability, fused.probability)


def test_ranks_within_a_case_follow_its_direction_and_share_ties(three):
    found = document(*three, result("b-x-down", dict.fromkeys(three[0].outcomes, 0.5), False))
    ranks = [{name: s.rank for name, s in case.scores.items()} for case in found.cases]
    assert ranks[0] == {"worst": 4, "middle": 2, "random": 3, "best": 1}
    assert ranks[1] == {"worst": 4, "middle": 2, "random": 3, "best": 1}
    assert ranks[3] == dict.fromkeys(ranks[0], 2.5)


def test_scores_that_differ_by_rounding_tie():
    found = document(result("a-x-up", {"one": 0.1 + 0.2, "two": 0.3}))
    assert [s.rank for s in found.cases[0].scores.values()] == [1.5, 1.5]


def test_methods_that_cannot_be_told_apart_share_a_place():
    """A gate such as `two.rank <= 1` must not turn on the alphabet."""
    found = document(result("a-x-up", {"one": 0.5, "two": 0.5, "worse": 0.1}))
    assert entry(found, "one").meta_rank == pytest.approx(entry(found, "two").meta_rank)
    assert [entry.rank for entry in found.leaderboard] == [1, 1, 3]


def test_a_case_says_what_it_was(three):
    case = document(*three).cases[1]
    expected = {
        "id": "a-x-down",
        "dataset": "a",
        "model": "x",
        "protocol": "down",
        "higher_is_better": False,
        "images": 8,
        "accuracy": 0.75,
    }
    assert {name: getattr(case, name) for name in expected} == expected
    score = case.scores["best"]
    assert score.score == 0.1
    assert score.status == "ok"
    assert score.curve == Curve(x=[0.0, 1.0], y=[1.0, 0.1])
    assert score.constant_maps == 1


def test_beating_random_is_counted_per_case_in_its_own_direction(three):
    found = document(*three)
    assert entry(found, "best").beats_random == Counts(3, of=3)
    assert entry(found, "worst").beats_random == Counts(0, of=3)
    assert entry(found, "middle").beats_random == Counts(2, of=3)
    assert entry(found, "random").beats_random == Counts(0, of=0)


def test_beating_random_takes_more_than_a_better_score():
    found = document(result("a-x-up", {"random": 0.5, "slightly": 0.501}))
    assert entry(found, "slightly").beats_random == Counts(0, of=1)


def test_beating_random_is_decided_on_paired_resamples():
    """Both scatter widely, but together: the difference is sure."""
    wide = RNG.normal(0, 1, size=50)
    random = Outcome("ok", score=0.0, replicates=wide, seconds=0.1)
    better = Outcome("ok", score=0.01, replicates=wide + 0.01, seconds=0.1)
    found = document(result("a-x-up", {"random": random, "better": better}))
    assert entry(found, "better").beats_random == Counts(1, of=1)


def test_cases_without_random_are_not_counted():
    found = document(
        result("a-x-up", {"random": None, "other": 0.9}),
        result("b-x-up", {"random": 0.1, "other": 0.9}),
    )
    assert entry(found, "other").beats_random == Counts(1, of=1)
    without = document(result("a-x-up", {"one": 0.1, "other": 0.9}))
    assert entry(without, "other").beats_random == Counts(0, of=0)


def test_a_case_without_a_score_is_not_beaten_unless_the_method_is_not_for_it():
    found = document(
        result("a-x-up", {"random": 0.1, "other": 0.9}),
        result("b-x-up", {"random": 0.1, "other": Outcome("undefined", "no score")}),
        result("c-x-up", {"random": 0.1, "other": None}),
        result("d-x-up", {"random": 0.1, "other": Outcome("not_applicable", "not for it")}),
    )
    assert entry(found, "other").beats_random == Counts(1, of=3)


def test_a_method_without_any_score_is_left_off_the_board():
    found = document(
        result("a-x-up", {"one": 0.2, "broken": None, "two": 0.4}),
        result("b-x-up", {"one": 0.2, "broken": None, "two": 0.4}),
    )
    assert board(found) == ["two", "one"]
    assert found.pairwise.methods == ["one", "two"]
    broken = found.cases[0].scores["broken"]
    assert broken.status == "error"
    assert broken.reason == "it broke"
    assert broken.rank is None
    assert found.run.seconds_per_image == {"one": 0.5, "broken": None, "two": 0.5}


def test_an_absent_score_costs_no_method_a_rank():
    away = Outcome("not_applicable", "only for transformers")
    found = document(
        result("a-x-up", {"one": 0.2, "away": away, "two": 0.4}),
        result("b-x-up", {"one": 0.2, "away": 0.9, "two": 0.4}),
    )
    scores = found.cases[0].scores
    assert scores["away"].status == "not_applicable"
    assert [scores[name].rank for name in ("one", "away", "two")] == [2, None, 1]
    assert board(found) == ["away", "two", "one"]
    assert entry(found, "away").mean_rank == 1
    assert entry(found, "away").wins == 1


def test_methods_that_never_meet_give_a_problem_instead_of_a_board():
    found = document(
        result("a-x-up", {"one": 0.2, "two": None}), result("b-x-up", {"one": None, "two": 0.4})
    )
    assert found.leaderboard == []
    assert "one | two" in found.leaderboard_problem
    assert found.cases[0].scores["one"].rank == 1
    dumps(found)


@pytest.mark.parametrize(
    "results",
    [[], [result("a-x-up", {"one": None})], [result("a-x-up", {})]],
    ids=["no case", "no score", "no method"],
)
def test_a_run_without_any_score_has_an_empty_board(results):
    found = document(*results, methods=[] if not results else None)
    assert found.leaderboard == []
    assert found.leaderboard_problem == ""
    dumps(found)


def test_a_single_method_stands_at_zero():
    [only] = document(result("a-x-up", {"one": 0.3})).leaderboard
    assert (only.rank, only.meta_rank, only.mean_rank, only.wins) == (1, 0, 1, None)


def test_a_resample_without_a_score_does_not_stop_the_report():
    replicates = np.append(NOISE[0][:49], math.nan)
    shaky = Outcome("ok", score=0.0, replicates=replicates, seconds=0.1)
    found = document(result("a-x-up", {"one": 0.5, "shaky": shaky, "random": 0.1}))
    assert board(found) == ["one", "random", "shaky"]
    dumps(found)


def test_the_document_is_json_and_the_same_each_time(three):
    first = dumps(document(*three), sort_keys=True)
    assert dumps(document(*three), sort_keys=True) == first


def test_agreement_is_that_of_the_scores_and_of_the_checkpoints(three):
    along = check("checkpoints", status="failed", at_25=0.5)
    found = document(*three, checks=[along]).consistency
    assert {p.level: p.rank_correlation for p in found.pairs} == {
        "protocol": 1, "dataset": 0.8, "checkpoint": 0.5,
    }  # fmt: skip
    assert found.concordance.methods == 4
    assert found.cases[0].case == "b-x-up"
    assert [without.protocol for without in found.without_protocol] == ["down", "up"]


def test_verdicts_stand_in_the_order_of_the_board(three):
    checks = [check("contract", "methods", name) for name in ("worst", "best", "middle")]
    verdicts = document(*three, checks=checks).method_verdicts
    assert [verdict.method for verdict in verdicts] == ["best", "middle", "worst"]


def test_what_is_volatile_stands_in_one_place(three):
    slow = [
        replace(
            case,
            outcomes={name: replace(o, seconds=9.0) for name, o in case.outcomes.items()},
        )
        for case in three
    ]
    one, two = document(*three), document(*slow, run=replace(RUN, seconds=2.0))
    assert one.run != two.run
    assert replace(one, run=RUN) == replace(two, run=RUN)


def test_what_was_passed_in_comes_out(three):
    checks = [check("contract", "methods", "best")]
    found = document(*three, checks=checks, missing=["a-b-c"], run=replace(RUN, workers=2))
    assert found.checks == checks
    assert found.missing == ["a-b-c"]
    assert found.run.workers == 2
    assert found.settings.methods == ["worst", "middle", "random", "best"]
