import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attrcheck.contracts import Protocol, Reduction
from attrcheck.engine import resampling
from attrcheck.engine.resampling import (
    RESAMPLES,
    condense,
    interval,
    replicate,
    replicates,
    resample,
)
from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.store.seeds import derive


@dataclass(frozen=True)
class Scoring(Protocol):
    """Scores rows by any function of the column `x`, which may be the images' own scores."""

    score: object
    mean: bool = False
    higher_is_better = True

    def observe(self, model, batch, maps, shared):
        raise NotImplementedError

    def reduce(self, rows):
        per_image = rows["x"] if self.mean else None
        return Reduction(self.score(rows["x"]), per_image=per_image)


def nanmean(values):
    defined = values[np.isfinite(values)]
    return defined.mean() if len(defined) else math.nan


VALUES = arrays(
    np.float64,
    st.integers(1, 12),
    elements=st.floats(-100, 100) | st.just(math.nan),
)


@given(VALUES)
def test_a_weighted_mean_equals_reducing_each_resample(values):
    """NaN of an image: it has no score, and the mean is over the others that were drawn."""
    counts = resample(len(values), 0, "digits-resnet")[:40]
    quick = replicate(Scoring(nanmean, mean=True), {"x": values}, counts)
    slow = replicate(Scoring(nanmean), {"x": values}, counts)
    np.testing.assert_allclose(quick, slow, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("at_once", [2**21, 100])
@pytest.mark.parametrize("undefined", [[], [3], [0, 11, 12]])
def test_all_methods_at_once_are_as_one_by_one(at_once, undefined, monkeypatch):
    monkeypatch.setattr(resampling, "AT_ONCE", at_once)
    rng = np.random.default_rng(0)
    rows = {name: {"x": rng.normal(size=40)} for name in "abc"}
    rows["b"]["x"][undefined] = math.nan
    for mean in (True, False):
        protocol = Scoring(nanmean, mean=mean)
        reductions = {name: protocol.reduce(some) for name, some in rows.items()}
        together = replicates(protocol, rows, reductions, 40, 0, "d-m")
        for name, some in rows.items():
            parts = resampling.draws(40, 0, "d-m")
            alone = np.concatenate([replicate(protocol, some, counts) for counts in parts])
            assert together[name].tobytes() == alone.tobytes()


def test_what_was_reduced_is_not_reduced_again_for_every_resample(monkeypatch):
    monkeypatch.setattr(resampling, "AT_ONCE", 100)
    calls = []
    protocol = Scoring(lambda values: calls.append(1) or 0.5, mean=True)
    rows = {"a": {"x": np.ones(10)}}
    reductions = {"a": protocol.reduce(rows["a"])}
    replicates(protocol, rows, reductions, 10, 0, "d-m")
    assert len(calls) == 1


def test_reducing_anew_sees_every_image_as_often_as_it_was_drawn():
    counts = np.array([[2, 0, 1], [0, 3, 0]])
    seen = []
    protocol = Scoring(lambda values: seen.append(sorted(values.tolist())) or 0.0)
    replicate(protocol, {"x": np.array([1, 2, 3])}, counts)
    assert seen[-2:] == [[1, 1, 3], [2, 2, 2]]


def test_a_resample_without_a_defined_image_has_no_score():
    counts = np.array([[2, 0], [1, 1], [0, 2]])
    scores = replicate(Scoring(nanmean, mean=True), {"x": np.array([math.nan, 0.25])}, counts)
    assert np.isnan(scores[0])
    assert scores[1:].tolist() == [0.25, 0.25]


def test_no_warning_where_nothing_is_defined(recwarn):
    counts = resample(3, 0, "a-b")
    rows = {"x": np.full(3, math.nan)}
    assert np.isnan(replicate(Scoring(nanmean, mean=True), rows, counts)).all()
    assert not recwarn


@pytest.mark.parametrize("at_once", [1, 50, 333, 7000])
def test_draws_do_not_depend_on_how_many_come_at_once(at_once, monkeypatch):
    whole = resample(7, 3, "a-b")
    monkeypatch.setattr(resampling, "AT_ONCE", at_once)
    parts = list(resampling.draws(7, 3, "a-b"))
    assert max(map(len, parts)) == max(1, min(RESAMPLES, at_once // 7))
    assert np.array_equal(np.concatenate(parts), whole)


@given(st.integers(1, 20), st.integers(0, 2**32))
def test_a_resample_draws_as_many_images_as_there_are(images, seed):
    counts = resample(images, seed, "a-b")
    assert counts.shape == (RESAMPLES, images)
    assert (counts.sum(axis=1) == images).all()
    assert (counts >= 0).all()


def test_draws_are_those_of_the_explicit_resampling():
    rng = np.random.default_rng(derive(3, "a-b", "bootstrap"))
    draws = rng.integers(7, size=(RESAMPLES, 7))
    slow = [np.bincount(row, minlength=7) for row in draws]
    assert resample(7, 3, "a-b").tolist() == np.array(slow).tolist()


def test_a_pair_always_has_the_same_draws_and_another_pair_others():
    assert (resample(9, 0, "a-b") == resample(9, 0, "a-b")).all()
    assert (resample(9, 0, "a-b") != resample(9, 0, "a-c")).any()
    assert (resample(9, 0, "a-b") != resample(9, 1, "a-b")).any()


def test_every_image_is_drawn_equally_often():
    mean = resample(10, 0, "a-b").mean(axis=0)
    assert mean == pytest.approx(np.ones(10), abs=0.15)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(5)
    protocol = Scoring(np.mean, mean=True)
    covered = 0
    for number in range(200):
        values = rng.normal(1.5, 2.0, size=100)
        counts = resample(100, number, "a-b")
        low, high = interval(replicate(protocol, {"x": values}, counts))
        assert low < values.mean() < high
        covered += low <= 1.5 <= high
    assert 0.89 <= covered / 200 <= 0.985


def test_an_interval_leaves_out_what_is_not_defined():
    values = np.arange(101.0)
    assert interval(values) == pytest.approx((2.5, 97.5))
    assert interval(np.append(values, [math.nan, math.inf])) == pytest.approx((2.5, 97.5))
    assert interval(np.array([math.nan])) == (None, None)
    assert interval(np.empty(0)) == (None, None)
    assert interval(np.array([2.0])) == (2.0, 2.0)


def test_a_resample_on_which_the_score_is_infinite_has_no_score():
    endless = Scoring(lambda values: math.inf)
    scores = replicate(endless, {"x": np.ones(2)}, np.ones((1, 2), int))
    assert np.isnan(scores).all()


def condensed(replicates, higher=True, **others):
    """The outcomes and standings of a case whose methods have these replicates."""
    outcomes = {
        name: Outcome("ok", score=0.5, replicates=np.array(values, dtype=float))
        for name, values in replicates.items()
    }
    result = condense(CaseResult("a-b-c", higher, 8, 0.75, outcomes | others))
    return {name: out.beats_random for name, out in result.outcomes.items()}, result.standings


@pytest.mark.parametrize(
    ("higher", "standings"), [(True, [[2, 1], [1, 1]]), (False, [[1, 2], [1, 1]])]
)
def test_standings_are_those_of_each_resample_in_the_direction_of_the_case(higher, standings):
    away = Outcome("not_applicable", "not for this model")
    _, found = condensed({"one": [0.3, 0.5], "two": [0.1, 0.5]}, higher, away=away)
    assert found.dtype == np.uint8
    assert found.tolist() == [[*row, 0] for row in standings]


def test_scores_that_differ_by_rounding_alone_stand_alike():
    _, found = condensed({"one": [0.3], "two": [0.1 + 0.2], "three": [0.3 + 1e-8]})
    assert found.tolist() == [[1, 1, 2]]


def test_a_resample_without_a_score_has_no_standing():
    _, found = condensed({"one": [0.3, math.nan], "two": [math.nan, 0.1]})
    assert found.tolist() == [[1, 0], [0, 1]]


def test_who_beats_random():
    rng = np.random.default_rng(0)
    wide = rng.normal(0, 1, size=50)
    replicates = {
        "random": wide,
        "paired": wide + 0.01,  # both scatter widely, but together: the difference is sure
        "apart": rng.normal(0.01, 1, size=50),
        "worse": wide - 0.01,
    }
    others = {
        "away": Outcome("not_applicable"),
        "broken": Outcome("error", "it broke"),
        "undefined": Outcome("undefined"),
    }
    beats, _ = condensed(replicates, **others)
    assert beats == {
        "random": None, "paired": True, "apart": False, "worse": False,
        "away": None, "broken": False, "undefined": False,
    }  # fmt: skip
    lower, _ = condensed(replicates, higher=False)
    assert lower == {"random": None, "paired": False, "apart": False, "worse": True}


def test_without_random_nobody_is_compared_with_it():
    assert condensed({"one": [0.5], "two": [0.4]})[0] == {"one": None, "two": None}
    broken = Outcome("error", "it broke")
    assert condensed({"one": [0.5]}, random=broken)[0] == {"one": None, "random": None}


def test_a_case_without_any_score_has_no_resamples():
    beats, found = condensed({}, one=Outcome("error", "it broke"))
    assert beats == {"one": None}
    assert found.shape == (0, 1)
