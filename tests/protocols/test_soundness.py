"""Soundness: published figures in both orders, an oracle from the paper, by hand, and its laws."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.protocols import soundness as module
from attrcheck.protocols.order import pixel_counts
from attrcheck.protocols.soundness import PERCENT, STRIDE, Soundness, soundness
from tests import reference
from tests.worlds import batch_of, linear_model, rows_of, soundness_vectors

SIDE = 6
MEAN = Soundness(removal="mean")


def rows_from(correct, included, chance=0.0):
    """Rows as they are observed."""
    correct = np.array(correct, dtype=bool)
    return {
        "correct": correct,
        "included": np.array(included, dtype=np.float64),
        "chance": np.full(len(correct), chance),
    }


@st.composite
def any_rows(draw, images=12, steps=9):
    """Rows of some method: any responses, attribution that only grows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    added = rng.integers(0, 3, (images, steps)) / 2
    added[:, 0] += draw(st.sampled_from([0, 1]))
    correct = rng.random((images, steps)) < np.linspace(0, 1, steps)
    return rows_from(correct, added.cumsum(1), draw(st.sampled_from([0.0, 0.1, 1 / 3])))


def published_counts(pixels, at, of):
    """Their pixel counts are cut off, and not rounded."""
    return [pixels * k // of for k in at]


@pytest.fixture(scope="module")
def observed(exact_linear):
    """Rows of the published maps, with as many pixels per step as published, and their figures."""
    network, images, labels, maps, published = soundness_vectors()
    batch = batch_of(images, labels, network)  # chance 0: the published rule knows none
    protocol = Soundness(removal=exact_linear)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "pixel_counts", published_counts)
        lifted = {"ixg_floor": 0.6 + 0.4 * maps["ixg"]}
        rows = {
            name: rows_of(protocol, network, batch, values)
            for name, values in {**maps, **lifted}.items()
        }
    return rows, published


NAMES = ["ixg", "ixg_pow3", "ixg_scaled", "random"]
each_map = pytest.mark.parametrize("name", NAMES)


@each_map
def test_accuracies_are_the_published_ones(name, observed):
    rows, published = observed
    right = rows[name]["correct"].sum(axis=0)
    assert right.tolist() == np.rint(60 * published[f"sound_acc_{name}"]).tolist()


def test_added_and_false_attribution_are_the_published_ones(observed):
    rows, published = observed
    included = rows["ixg"]["included"]
    added = np.diff(included, axis=1, prepend=0)
    np.testing.assert_allclose(added.T, published["sound_newattr_ixg"], atol=1e-6)
    stalls = np.diff(rows["ixg"]["correct"].sum(0), prepend=0) <= 0.6
    stalls &= rows["ixg"]["correct"].sum(0) > 2.4
    false = np.cumsum(added * stalls, axis=1) - added * stalls  # before the step
    # Sums of up to 28 that they keep in float32.
    np.testing.assert_allclose(false.T, published["sound_accfalse_before_ixg"], rtol=1e-6)


@each_map
def test_the_published_curve_is_one_step_late(name, observed):
    rows, published = observed
    correct, included = rows[name]["correct"], rows[name]["included"]
    late = reference.sound(correct, included, late=True, strict=False)
    np.testing.assert_allclose(late, published[f"sound_q_{name}"], atol=1e-6)


@each_map
def test_ours_is_the_order_of_the_paper_on_the_same_rows(name, observed):
    rows, published = observed
    correct, included = rows[name]["correct"], rows[name]["included"]
    reduced = MEAN.reduce(rows[name])
    assert reduced.curve[0] == pytest.approx(published[f"sound_acc_{name}"], abs=1e-6)
    np.testing.assert_allclose(reduced.curve[1], reference.sound(correct, included), atol=1e-9)
    assert np.abs(reduced.curve[1] - published[f"sound_q_{name}"]).max() > 0.01


def test_steps_of_our_own_counts_agree_where_the_counts_do(exact_linear):
    """Rounded, not cut off: a third of the steps keep as many pixels as the published code."""
    network, images, labels, maps, published = soundness_vectors()
    same = [
        place
        for place, counts in enumerate(
            zip(pixel_counts(256, PERCENT, 100), published_counts(256, PERCENT, 100), strict=True)
        )
        if counts[0] == counts[1]
    ]
    assert len(same) > 30
    protocol = Soundness(tuple(PERCENT[place] for place in same), removal=exact_linear)
    batch = batch_of(images, labels, network)
    right = rows_of(protocol, network, batch, maps["ixg"])["correct"].sum(axis=0)
    assert right.tolist() == np.rint(60 * published["sound_acc_ixg"][same]).tolist()


def test_a_cube_lifts_soundness_and_a_lifted_floor_sinks_it(observed):
    """The order is the same, but soundness sees values, so that values can game it."""
    rows, _ = observed
    reduced = {name: MEAN.reduce(rows[name]) for name in ("ixg", "ixg_pow3", "ixg_floor")}
    last = {name: reduction.curve[1][-1] for name, reduction in reduced.items()}
    assert last["ixg"] == pytest.approx(0.73, abs=0.005)
    assert last["ixg_pow3"] == pytest.approx(0.96, abs=0.005)
    assert last["ixg_floor"] < 0.5
    assert reduced["ixg_floor"].score < reduced["ixg"].score < reduced["ixg_pow3"].score
    for name in rows:  # not one response differs
        same = np.array_equal(rows[name]["correct"], rows["ixg"]["correct"])
        assert same is (name != "random")


def test_by_hand():
    # Accuracy 1/2, 1/2, 1: the second step adds only false attribution.
    protocol = replace(MEAN, percent=(75, 50, 25))
    rows = rows_from([[1, 1, 1], [0, 0, 1]], [[1, 2, 3], [2, 2, 4]])
    reduced = protocol.reduce(rows)
    assert reduced.curve[0] == [0.5, 0.5, 1]
    # q_1 = 1; q_2: image one has 1 of 2 false, image two 0 of 2; q_3: 1 of 3 and 0 of 4.
    assert reduced.curve[1] == pytest.approx([1, 3 / 4, 5 / 6])
    # From .04 to .5 it is 1, then it goes down to 5/6 in a line; step 2 brought no new accuracy.
    levels = np.linspace(0.04, 1, 101)
    wanted = np.where(levels <= 0.5, 1, 1 - (levels - 0.5) / 3).mean()
    assert reduced.score == pytest.approx(wanted)


def test_before_the_start_no_step_is_false():
    # One image of four is right, at a chance of 1/4: no more than a guess.
    correct = np.zeros((4, 3))
    correct[0] = 1
    rows = rows_from(correct, np.ones((4, 3)).cumsum(1), chance=0.25)
    assert MEAN.reduce(rows).curve[1] == [1, 1, 1]
    assert np.isnan(MEAN.reduce(rows).score)
    assert MEAN.reduce(rows | {"chance": np.zeros(4)}).curve[1] == pytest.approx([1, 1 / 2, 1 / 3])


def test_a_rise_of_one_hundredth_is_a_rise():
    """Counts are compared: in floats 56 and 57 of 100 lie less than a hundredth apart."""
    assert 0.57 - 0.56 < 0.01
    correct = np.zeros((100, 2))
    correct[:56, 0] = correct[:57, 1] = 1
    assert MEAN.reduce(rows_from(correct, np.ones((100, 2)).cumsum(1))).curve[1] == [1, 1]
    correct[56, 1] = 0
    assert MEAN.reduce(rows_from(correct, np.ones((100, 2)).cumsum(1))).curve[1] == [1, 0.5]


@given(st.integers(0, 2**32 - 1))
def test_rows_and_curve_equal_those_of_the_oracle(seed):
    torch.manual_seed(seed)
    model = linear_model(torch.randn(SIDE, SIDE))
    images, labels = torch.randn(5, 1, SIDE, SIDE), torch.tensor([0, 1, 1, 0, 1])
    maps = torch.randint(0, 4, (5, SIDE, SIDE)) / 3
    maps[:, 0, 0] = 1  # so that normalisation changes nothing
    batch = batch_of(images, labels, model)
    protocol = replace(MEAN, percent=PERCENT[::7])
    rows = rows_of(protocol, model, batch, maps)
    correct, included = reference.inserted(
        model, images, labels, maps, batch.seeds, protocol.percent
    )
    assert np.array_equal(rows["correct"], correct)
    np.testing.assert_allclose(rows["included"], included, atol=1e-12)
    reduced = protocol.reduce(rows)
    np.testing.assert_allclose(reduced.curve[1], reference.sound(correct, included), atol=1e-9)


@given(any_rows())
def test_the_score_is_the_mean_along_the_best_accuracy_so_far(rows):
    reduced = MEAN.reduce(rows)
    start = max(reference.START, Fraction(rows["chance"][0]).limit_denominator(10))
    accuracy = rows["correct"].mean(axis=0)
    q = reference.sound(rows["correct"], rows["included"], start=start)
    np.testing.assert_allclose(reduced.curve[1], q, atol=1e-9)
    if accuracy.max() <= start:
        assert np.isnan(reduced.score)
    else:
        wanted = reference.mean_along(accuracy, q, float(start), accuracy.max(), points=100)
        assert reduced.score == pytest.approx(wanted, abs=1e-9)


@given(any_rows())
def test_score_and_curve_are_in_range(rows):
    reduced = MEAN.reduce(rows)
    q = np.array(reduced.curve[1])
    assert ((q[np.isfinite(q)] >= 0) & (q[np.isfinite(q)] <= 1)).all()
    assert np.isnan(reduced.score) or 0 <= reduced.score <= 1


@given(any_rows(), st.integers(0, 2**32 - 1))
def test_resampling_is_repeating_rows(rows, seed):
    rng = np.random.default_rng(seed)
    rows["included"][0] = np.nan  # one image is undefined
    counts = rng.multinomial(12, np.full(12, 1 / 12), size=6)
    counts = np.concatenate([counts, np.ones((1, 12), dtype=int), np.eye(1, 12, dtype=int)])
    for protocol in (MEAN, replace(MEAN, level=0.7)):
        repeated = [
            protocol.reduce({name: row.repeat(count, axis=0) for name, row in rows.items()}).score
            for count in counts
        ]
        np.testing.assert_allclose(protocol.resample(rows, counts), repeated, atol=1e-9)
    assert np.isnan(repeated[-1])  # nothing but the image that is undefined


def test_nothing_defined_is_no_score():
    nothing = rows_from(np.ones((2, 3)), np.full((2, 3), np.nan))
    reduced = MEAN.reduce(nothing)
    assert np.isnan(reduced.score)
    assert reduced.undefined == 2
    assert np.isnan(MEAN.resample(nothing, np.ones((3, 2), dtype=int))).all()
    assert MEAN.settle([nothing]) == MEAN


def test_an_empty_canvas_says_nothing_about_a_map():
    """Where so few pixels are there that a ratio keeps none, the curve starts at the next."""
    rows = rows_from([[1, 0, 1], [0, 1, 1]], [[0, 1, 2], [0, 1, 2]])
    reduced = MEAN.reduce(rows)
    assert np.isnan(reduced.curve[1][0])
    # Step 2 rises no further than the guess of step 1, so it is false, and step 3 rises.
    assert reduced.curve[1][1:] == [0, 0.5]
    wanted = reference.mean_along([0.5, 1], [0, 0.5], 0.04, 1, points=100)
    assert reduced.score == pytest.approx(wanted)


def test_competitors_are_scored_up_to_what_all_reach():
    ramp = np.arange(1, 5)
    included = np.ones((4, 4)).cumsum(1)
    good = rows_from([[k >= i for k in ramp] for i in ramp], included)  # up to 1
    poor = rows_from([[k >= i and i < 3 for k in ramp] for i in ramp], included)  # up to 1/2
    settled = MEAN.settle([good, poor])
    assert settled.level == 0.5
    assert MEAN.settle([poor, good]) == settled
    assert MEAN.settle([]) == MEAN
    assert MEAN.settle([good]).level == 1
    # Up to there the two did the same.
    assert settled.reduce(good).score == settled.reduce(poor).score == 1
    assert MEAN.reduce(poor).score == 1
    assert settled.observation == MEAN.observation


def test_a_competitor_without_a_map_holds_nobody_back():
    good = rows_from(np.ones((2, 3)), np.ones((2, 3)).cumsum(1))
    gone = rows_from(np.zeros((2, 3)), np.full((2, 3), np.nan))
    assert MEAN.settle([good, gone]).level == 1


def test_a_competitor_that_never_starts_holds_nobody_back_and_has_no_score():
    good = rows_from(np.ones((2, 3)), np.ones((2, 3)).cumsum(1))
    lost = rows_from(
        np.zeros((2, 3)), [[1, 2, 3], [np.nan] * 3]
    )  # one map, of an image always wrong
    settled = MEAN.settle([good, lost])
    assert settled == MEAN.settle([good])
    assert settled.reduce(good).score == MEAN.reduce(good).score
    assert np.isnan(settled.reduce(lost).score)
    assert np.isnan(settled.resample(lost, np.ones((3, 2), dtype=np.int64))).all()
    assert MEAN.settle([lost]) == MEAN


def test_a_flat_map_is_undefined_and_counted():
    model = linear_model(torch.ones(SIDE, SIDE))
    batch = batch_of(torch.rand(3, 1, SIDE, SIDE), torch.tensor([1, 1, 1]), model)
    maps = torch.rand(3, SIDE, SIDE)
    maps[1], maps[2] = 0.3, -maps[2]
    rows = rows_of(MEAN, model, batch, maps)
    assert np.isnan(rows["included"]).any(axis=1).tolist() == [False, True, True]
    reduced = MEAN.reduce(rows)
    assert reduced.undefined == 2
    np.testing.assert_equal(
        reduced, replace(MEAN.reduce({k: v[:1] for k, v in rows.items()}), undefined=2)
    )


@given(st.integers(0, 2**32 - 1))
def test_what_is_inserted_stays(seed):
    """The sets of successive steps are nested, so included attribution only grows."""
    torch.manual_seed(seed)
    seen = []

    class Look(torch.nn.Module):
        def forward(self, images):
            seen.append(images[:, 0] != 0)
            return images.sum((2, 3)).expand(-1, 2)

    images, maps = torch.rand(2, 1, SIDE, SIDE) + 1, torch.randint(0, 3, (2, SIDE, SIDE)).float()
    batch = batch_of(images, torch.tensor([0, 1]), Look())
    seen.clear()
    included = rows_of(MEAN, Look(), batch, maps)["included"]
    assert len(seen) == 96
    for before, after in itertools.pairwise(seen):
        assert (before <= after).all()
    assert (np.diff(included, axis=1) >= -1e-12).all()
    kept = [SIDE * SIDE - n for n in pixel_counts(SIDE * SIDE, PERCENT, 100)]
    assert [int(present[0].sum()) for present in seen] == kept


def test_normalisation_is_declared_and_scale_does_not_matter_by_default():
    torch.manual_seed(0)
    model = linear_model(torch.randn(SIDE, SIDE))
    batch = batch_of(torch.randn(2, 1, SIDE, SIDE), torch.tensor([0, 1]), model)
    maps = torch.randn(2, SIDE, SIDE)
    one, other = (rows_of(MEAN, model, batch, values) for values in (maps, 1000 * maps))
    np.testing.assert_allclose(one["included"], other["included"], rtol=1e-6)
    clipped = replace(MEAN, normalisation="clip")
    wanted = maps.double().clamp(0, 1).sum((1, 2))
    least = rows_of(replace(clipped, percent=(0,)), model, batch, maps)["included"][:, 0]
    np.testing.assert_allclose(least, wanted)
    assert clipped.observation != MEAN.observation
    assert "normalisation='max'" in repr(MEAN)


def test_steps_are_the_ratios_of_the_paper_and_fewer_where_time_is_short():
    assert PERCENT[:2] == (98, 97)
    assert PERCENT[-1] == 3
    assert len(PERCENT) == 96
    assert soundness().percent == PERCENT
    assert soundness("default").percent == PERCENT[:: STRIDE["default"]]
    assert STRIDE["default"] > 1
    # What a step must rise by is as wide as the step.
    assert soundness("default").rise == Fraction(STRIDE["default"], 100)
    assert soundness().least_images == 100
    assert (soundness().rise, soundness().start) == (Fraction(1, 100), Fraction(4, 100))
