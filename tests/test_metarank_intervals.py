import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrcheck import metarank
from attrcheck.metarank import fuse
from attrcheck.tallies import standings
from tests import reference

NAN = math.nan
SWEEP = math.log(2.5 / 0.5) / 2  # kappa of a method that wins two cases of two
WIN, LOSS = [1.0, 0.0], [0.0, 1.0]


def replicates(*cases):
    """Scores [cases, methods, R] from a list of replicates [methods] for each case."""
    return np.moveaxis(np.array(cases), 1, 2)


def intervals(scores, groups, higher_is_better=True, tolerance=0.0, **options):
    """Those of scores [cases, methods, R]."""
    signs = np.broadcast_to(np.where(higher_is_better, 1, -1), len(scores))
    within = np.broadcast_to(tolerance, len(scores))
    cases = [
        standings(sign * np.asarray(case).T, width)
        for case, sign, width in zip(scores, signs, within, strict=True)
    ]
    return of_standings(cases, groups, tolerance=tolerance, **options)


def of_standings(cases, groups, level=0.95, **options):
    """Those of standings."""
    return metarank.ends(metarank.resample(cases, groups, **options), level)


def ends(*arguments, **options):
    low, high = intervals(*arguments, **options)
    return low.tolist(), high.tolist()


def test_groups_are_drawn_with_replacement():
    # First in one group and last in the other: a quarter of the samples sweeps either way.
    low, high = intervals(replicates([WIN], [LOSS]), ["a", "b"])
    np.testing.assert_allclose(low, -SWEEP)
    np.testing.assert_allclose(high, SWEEP)
    assert ends(replicates([WIN], [LOSS]), ["a", "b"], level=0.4) == ([0, 0], [0, 0])


def test_each_draw_has_its_own_replicate():
    # One resample for all groups at once would leave no sample with one win each.
    scores = replicates([WIN, LOSS], [WIN, LOSS])
    assert ends(scores, ["a", "b"], level=0.4) == ([0, 0], [0, 0])


def test_cases_of_a_group_stay_together():
    # Both cases turn with the images: no sample has one win and one loss.
    low, high = intervals(replicates([WIN, LOSS], [WIN, LOSS]), ["a", "a"], level=0.4)
    np.testing.assert_allclose(low, -SWEEP)
    np.testing.assert_allclose(high, SWEEP)


def test_a_single_group_resamples_images_only():
    low, high = intervals(replicates([WIN], [LOSS]), ["a", "a"])
    np.testing.assert_array_equal(low, 0)
    np.testing.assert_array_equal(high, 0)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.1, 0.5, 2.0]),
    st.sampled_from([None, 0.05]),
    st.sampled_from([0.0, 0.7]),
)
def test_without_anything_to_resample_the_ends_are_kappa(seed, smoothing, clip, tolerance):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(5, 4))
    options = {
        "higher_is_better": rng.random(5) < 0.5,
        "smoothing": smoothing,
        "clip": clip,
        "tolerance": tolerance * rng.random(5),
    }
    low, high = intervals(scores[:, :, None], ["a"] * 5, samples=3, **options)
    expected = fuse(scores, **options).kappa
    np.testing.assert_allclose(low, expected, atol=1e-12)
    np.testing.assert_allclose(high, expected, atol=1e-12)


@given(st.integers(0, 2**32 - 1))
def test_order_of_cases_and_of_methods_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(6, 4, 5))
    groups = np.array(["a", "a", "b", "b", "b", "c"])
    higher, within = rng.random(6) < 0.5, rng.random(6)
    cases, methods = rng.permutation(6), rng.permutation(4)
    plain = intervals(scores, groups, higher_is_better=higher, tolerance=within, samples=50)
    moved = intervals(
        scores[cases][:, methods],
        groups[cases],
        higher_is_better=higher[cases],
        tolerance=within[cases],
        samples=50,
    )
    np.testing.assert_allclose(moved, np.array(plain)[:, methods], atol=1e-12)


def test_seed_decides_and_a_higher_level_is_wider():
    scores = np.random.default_rng(1).normal(size=(8, 3, 20))
    groups = list("aabbccdd")
    first = ends(scores, groups, seed=1)
    assert first == ends(scores, groups, seed=1)
    assert first != ends(scores, groups, seed=2, samples=101)
    wide, narrow = intervals(scores, groups, level=0.99), intervals(scores, groups, level=0.5)
    assert (wide[0] < narrow[0]).all()
    assert (narrow[0] < narrow[1]).all()
    assert (narrow[1] < wide[1]).all()


def test_covers_the_kappa_of_the_whole():
    rng = np.random.default_rng(0)
    truth = np.array([1.0, 0.5, 0.0])
    images = truth[:, None] + rng.normal(size=(12, 3, 200))
    again = np.stack([images[:, :, rng.integers(200, size=200)].mean(axis=2) for _ in range(40)], 2)
    low, high = intervals(again, [str(case // 2) for case in range(12)])
    kappa = fuse(images.mean(axis=2)).kappa
    assert (low <= kappa).all()
    assert (kappa <= high).all()
    assert low[0] > high[2]  # and tells the best from the worst


def test_samples_that_fall_apart_are_skipped():
    # The third method is missing from group b, so a sample of b alone says nothing of it.
    scores = replicates([[2.0, 1.0, 0.0]], [[2.0, 1.0, NAN]])
    low, high = intervals(scores, ["a", "b"], level=0.98)
    twice = fuse([[2, 1, 0], [2, 1, 0]]).kappa
    mixed = fuse([[2, 1, 0], [2, 1, NAN]]).kappa
    np.testing.assert_allclose(low, np.minimum(twice, mixed))
    np.testing.assert_allclose(high, np.maximum(twice, mixed))


def test_too_few_usable_samples_give_nan():
    # A chain over three groups holds only in samples that draw all three: 6 of 27.
    chain = [[1.0, 0.0, NAN, NAN], [NAN, 1.0, 0.0, NAN], [NAN, NAN, 1.0, 0.0]]
    low, high = intervals(np.array(chain)[:, :, None], ["a", "b", "c"])
    assert low.shape == high.shape == (4,)
    assert np.isnan([low, high]).all()
    # Over two groups, half of the samples hold.
    low, high = intervals(np.array(chain)[:2, :3, None], ["a", "b"])
    np.testing.assert_allclose(low, [math.log(3), 0, -math.log(3)], atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "groups", "options", "message"),
    [
        ((2, 3), "ab", {}, r"the axes \[resamples, methods\]"),
        ((2, 1, 3), "a", {}, r"1 groups do not fit replicates of 2 cases"),
        ((2, 0, 3), "ab", {}, r"of one shape, not \[\]"),
        ((0, 2, 3), "", {}, r"of one shape, not \[\]"),
        ((2, 1, 3), "ab", {"samples": 0}, "samples 0 must be >= 1"),
        ((2, 1, 3), "ab", {"level": 1.0}, "level 1.0 must lie between 0 and 1"),
        ((2, 1, 3), "ab", {"level": 0.0}, "level 0.0 must lie between 0 and 1"),
        ((2, 1, 3), "ab", {"smoothing": 0.0}, "smoothing"),
        ((2, 1, 3), "ab", {"clip": 0.6}, "clip"),
        ((2, 1, 3), "ab", {"tolerance": -1.0}, "tolerance"),
        ((2, 1, 3), "ab", {"tolerance": [0.0]}, "one for each of 2 cases"),
    ],
)
def test_bad_input_is_named(shape, groups, options, message):
    with pytest.raises(ValueError, match=message):
        of_standings(np.ones(shape, dtype=np.uint8), groups, **options)


def test_cases_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match=r"of one shape, not \[\(1, 2\), \(3, 2\)\]"):
        of_standings([np.ones((1, 2), "u1"), np.ones((3, 2), "u1")], "ab")


def test_infinite_scores_are_refused():
    with pytest.raises(ValueError, match="finite"):
        intervals([[[1.0], [math.inf]]], ["a"])


def test_a_case_without_resamples_has_no_say_but_its_group_is_drawn():
    rng = np.random.default_rng(0)
    first, second = standings(rng.normal(size=(20, 4))), np.empty((0, 4), dtype=np.uint8)
    absent = np.zeros((20, 4), dtype=np.uint8)
    for groups in ("aa", "ab"):
        with_none = of_standings([first, second], groups)
        np.testing.assert_array_equal(with_none, of_standings([first, absent], groups))


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.4, 1.0]),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([None, 0.05]),
)
def test_agrees_with_the_oracle(seed, tolerance, absent, clip):
    """Few values, so that ties are common; with 0.4 they are not transitive."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 8, size=(7, 5, 6)) * 0.25
    scores[rng.random(scores.shape) < absent] = NAN
    groups, higher = list("bbaaacd"), rng.random(7) < 0.5
    options = {"higher_is_better": higher, "tolerance": tolerance, "samples": 40, "seed": seed}
    low, high = intervals(scores, groups, clip=clip, **options)
    expected = reference.intervals(scores, groups, clip=clip, **options)
    np.testing.assert_allclose([low, high], expected, atol=1e-9)


def test_standings_of_both_kinds_count_together():
    row = [[0.0, 0.6, 1.2]]
    low, _ = of_standings(
        [standings(row, 1.0), standings([[3.0, 2.0, 1.0]])], "aa", tolerance=1.0, samples=1
    )
    fused = fuse([[0, 0.6, 1.2], [30, 20, 10]], tolerance=1.0)
    np.testing.assert_allclose(low, fused.kappa, atol=1e-12)


def test_threads_and_kinds_change_nothing(monkeypatch):
    rng = np.random.default_rng(0)
    cases = [standings(rng.normal(size=(20, 8)).round(1)) for _ in range(6)]
    cases[0][:, :2] = cases[1][:, 2:4] = 0
    plain = of_standings(cases, "aabbcc", samples=200)
    monkeypatch.setattr("attrcheck.metarank.LARGE", 0)
    np.testing.assert_allclose(of_standings(cases, "aabbcc", samples=200), plain, atol=1e-12)
