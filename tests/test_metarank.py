import math
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import rankdata

from attrcheck.metarank import DisconnectedError, case_ranks, fuse
from tests import reference

VECTORS = np.load(Path(__file__).parent / "data" / "metarank.npz")
NAN = math.nan


@st.composite
def designs(draw, absent=False, methods=(2, 6), cases=(1, 6)):
    """Scores with many ties, and gaps if `absent`; directions; all methods connected."""
    shape = draw(st.integers(*cases)), draw(st.integers(*methods))
    score = st.integers(-3, 3).map(float)
    if absent:
        score |= st.just(NAN)
    scores = np.array(
        draw(st.lists(score, min_size=shape[0] * shape[1], max_size=shape[0] * shape[1]))
    ).reshape(shape)
    higher = np.array(draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0])))
    assume(connected(scores))
    return scores, higher


def connected(scores):
    present = ~np.isnan(scores)
    met = (present.T @ present).astype(float) + np.eye(scores.shape[1])
    return bool((np.linalg.matrix_power(met, scores.shape[1]) > 0).all())


smoothings = st.sampled_from([0.1, 0.5, 1.0, 3.0])
tolerances = st.sampled_from([0.0, 1.0, 2.5])


@pytest.mark.parametrize("kind", ["complete", "ties"])
def test_reference_vectors(kind):
    scores = VECTORS[f"scores_{kind}"]
    result = fuse(scores)
    np.testing.assert_array_equal(result.wins, VECTORS[f"wins_{kind}"])
    np.testing.assert_array_equal(result.compared, VECTORS[f"n_{kind}"])
    np.testing.assert_allclose(result.kappa, VECTORS[f"kappa_{kind}_smooth_0.5"], atol=1e-12)
    for clip in ("0.001", "1e-06"):
        clipped = fuse(scores, clip=float(clip))
        np.testing.assert_allclose(clipped.kappa, VECTORS[f"kappa_{kind}_clip_{clip}"], atol=1e-10)
    np.testing.assert_allclose(
        fuse(-scores, higher_is_better=False).kappa, result.kappa, atol=1e-12
    )


def test_two_methods_by_hand():
    # Three wins and a tie of four: S = 3.5, L = ln(4 / 1), kappa = +-L / 2.
    result = fuse([[2, 1], [5, 4], [9, 3], [1, 1]])
    np.testing.assert_array_equal(result.wins, [[0, 3.5], [0.5, 0]])
    np.testing.assert_array_equal(result.compared, [[0, 4], [4, 0]])
    np.testing.assert_allclose(result.probability, [[0.5, 0.875], [0.125, 0.5]])
    np.testing.assert_allclose(result.logit, [[0, math.log(4)], [-math.log(4), 0]])
    np.testing.assert_allclose(result.kappa, [math.log(2), -math.log(2)])
    assert result.order.tolist() == [0, 1]
    assert result.residual == pytest.approx(0, abs=1e-12)


def test_three_methods_by_hand():
    # One case, a > b > c: every L is ln(1.5 / 0.5) = ln 3, so kappa = (2, 0, -2) ln 3 / 3.
    result = fuse([[0.1, 0.2, 0.3]], higher_is_better=False)
    np.testing.assert_allclose(result.kappa, np.array([2, 0, -2]) * math.log(3) / 3)
    # The misfits of the pairs are 1/3, 1/3 and -1/3 of L.
    assert result.residual == pytest.approx(1 / 3)


def test_chain_by_hand():
    # a meets b, b meets c, a never meets c: both differences are met exactly, ln 3 each.
    result = fuse([[2, 1, NAN], [NAN, 2, 1]])
    np.testing.assert_allclose(result.kappa, [math.log(3), 0, -math.log(3)], atol=1e-12)
    assert result.residual == pytest.approx(0, abs=1e-12)
    assert math.isnan(result.probability[0, 2])
    assert math.isnan(result.logit[2, 0])
    np.testing.assert_array_equal(np.diag(result.probability), 0.5)
    np.testing.assert_array_equal(np.diag(result.logit), 0)


def test_clip_by_hand():
    result = fuse([[2, 1], [2, 1], [2, 1], [1, 2]], clip=0.3)
    np.testing.assert_allclose(result.logit[0, 1], math.log(0.7 / 0.3))
    np.testing.assert_allclose(result.probability[0, 1], 0.75)  # reported as it was counted


def test_a_circle_has_no_scale():
    result = fuse([[3, 2, 1], [1, 3, 2], [2, 1, 3]])
    np.testing.assert_allclose(result.kappa, 0, atol=1e-12)
    assert result.residual == pytest.approx(1)


def test_all_tied():
    result = fuse(np.ones((4, 3)))
    np.testing.assert_array_equal(result.kappa, 0)
    assert result.residual == 0
    assert result.order.tolist() == [0, 1, 2]


def test_tolerance_ties_include_its_bound():
    assert fuse([[1.5, 1.0]], tolerance=0.5).wins[0, 1] == 0.5
    assert fuse([[1.5, 1.0]], tolerance=0.49).wins[0, 1] == 1
    assert fuse([[1.5, 1.0]] * 2, tolerance=[0.5, 0.1]).wins[0, 1] == 1.5


def test_order_ignores_rounding():
    # Seven methods of equal standing whose sums of logits differ in the last bits.
    scores = np.array([np.roll(np.arange(7.0) ** 2, shift) for shift in range(7)])
    result = fuse(scores, smoothing=0.3)
    np.testing.assert_allclose(result.kappa, 0, atol=1e-12)
    assert result.order.tolist() == list(range(7))
    noisy = fuse(scores[:, [3, 0, 5, 1, 6, 2, 4]], smoothing=0.3)
    assert noisy.order.tolist() == list(range(7))


def test_many_cases_and_blocks(monkeypatch):
    # More than 255 wins of one pair, and blocks that do not divide the number of methods.
    monkeypatch.setattr("attrcheck.tallies.BLOCK", 10)
    scores = np.tile([[5.0, 4.0, 3.0, 2.0, 1.0]], (600, 1))
    scores[300:, 2] = NAN
    result = fuse(scores)
    assert result.wins[0].tolist() == [0, 600, 300, 600, 600]
    assert result.wins[4].tolist() == [0, 0, 0, 0, 0]


@given(designs(absent=True), smoothings, tolerances, st.sampled_from([None, 0.01, 0.2]))
def test_agrees_with_the_oracle(design, smoothing, tolerance, clip):
    scores, higher = design
    result = fuse(
        scores, higher_is_better=higher, smoothing=smoothing, clip=clip, tolerance=tolerance
    )
    kappa, wins, compared = reference.fuse(scores, higher, smoothing, clip, tolerance)
    np.testing.assert_array_equal(result.wins, wins)
    np.testing.assert_array_equal(result.compared, compared)
    np.testing.assert_allclose(result.kappa, kappa, atol=1e-9)


@given(designs(absent=True), tolerances)
def test_pairwise_results_are_antisymmetric(design, tolerance):
    scores, higher = design
    for clip in (None, 0.01):
        result = fuse(scores, higher_is_better=higher, tolerance=tolerance, clip=clip)
        np.testing.assert_array_equal(result.logit, -result.logit.T)
        np.testing.assert_allclose(result.probability, 1 - result.probability.T)
        met = result.compared > 0
        np.testing.assert_array_equal(np.isnan(result.logit), ~(met | np.eye(len(met), dtype=bool)))
        np.testing.assert_array_equal(np.isnan(result.probability), np.isnan(result.logit))
        assert 0 <= result.residual <= 1 + 1e-12


@given(designs(absent=True))
def test_sum_is_zero_and_order_is_best_first(design):
    scores, higher = design
    result = fuse(scores, higher_is_better=higher)
    assert abs(result.kappa.sum()) < 1e-9
    assert sorted(result.order.tolist()) == list(range(scores.shape[1]))
    for first, second in zip(result.order[:-1], result.order[1:], strict=True):
        lead = result.kappa[first] - result.kappa[second]
        assert lead > 1e-9 or (abs(lead) <= 1e-9 and first < second)


@given(designs(absent=True), st.randoms(use_true_random=False))
def test_no_other_scale_fits_better(design, random):
    scores, higher = design
    result = fuse(scores, higher_is_better=higher)

    def misfit(kappa):
        return np.nansum((result.logit - (kappa[:, None] - kappa)) ** 2)

    shift = np.array([random.uniform(-1, 1) for _ in result.kappa])
    assert misfit(result.kappa) <= misfit(result.kappa + shift) + 1e-9
    # Unique: any shift that is not the same for all methods fits worse.
    assume(np.ptp(shift) > 0.01)
    assert misfit(result.kappa) < misfit(result.kappa + shift)


@given(designs(absent=True), st.randoms(use_true_random=False))
def test_order_of_methods_and_of_cases_does_not_matter(design, random):
    scores, higher = design
    methods = random.sample(range(scores.shape[1]), scores.shape[1])
    cases = random.sample(range(scores.shape[0]), scores.shape[0])
    result = fuse(scores, higher_is_better=higher)
    moved = fuse(scores[cases][:, methods], higher_is_better=higher[cases])
    np.testing.assert_allclose(moved.kappa, result.kappa[methods], atol=1e-9)
    np.testing.assert_array_equal(moved.wins, result.wins[np.ix_(methods, methods)])


@given(designs(absent=True), st.data())
def test_increasing_transforms_of_a_case_do_not_matter(design, data):
    scores, higher = design
    transforms = st.sampled_from([np.exp, np.cbrt, np.arctan, lambda x: 1e6 * x - 7])
    bent = np.array([data.draw(transforms)(row) for row in scores])
    np.testing.assert_array_equal(
        fuse(bent, higher_is_better=higher).kappa, fuse(scores, higher_is_better=higher).kappa
    )


@given(designs(absent=True), tolerances, st.sampled_from([None, 0.05]))
def test_reversing_all_scores_negates(design, tolerance, clip):
    scores, higher = design
    result = fuse(scores / 10, higher_is_better=higher, tolerance=tolerance / 10, clip=clip)
    for other in (
        fuse(-scores / 10, higher_is_better=higher, tolerance=tolerance / 10, clip=clip),
        fuse(scores / 10, higher_is_better=~higher, tolerance=tolerance / 10, clip=clip),
    ):
        np.testing.assert_array_equal(other.wins, result.wins.T)
        np.testing.assert_allclose(other.kappa, -result.kappa, atol=1e-9)


@given(st.integers(2, 6), st.integers(1, 6), smoothings, st.randoms(use_true_random=False))
def test_one_more_win_moves_two_methods_alike(methods, cases, smoothing, random):
    scores = np.array([random.sample(range(methods), methods) for _ in range(cases)], dtype=float)
    before = fuse(scores, smoothing=smoothing)
    # In the first case the method right behind another overtakes it.
    ahead = random.randrange(1, methods)
    loser, winner = np.flatnonzero(scores[0] == ahead), np.flatnonzero(scores[0] == ahead - 1)
    scores[0, winner], scores[0, loser] = ahead, ahead - 1
    gain = fuse(scores, smoothing=smoothing).kappa - before.kappa
    assert gain[winner] > 0
    np.testing.assert_allclose(gain[winner], -gain[loser])
    others = np.delete(gain, [winner.item(), loser.item()])
    np.testing.assert_array_equal(others, 0)


@given(designs(), smoothings)
def test_bounded_by_the_evidence(design, smoothing):
    scores, higher = design
    cases, methods = scores.shape
    most = math.log((cases + smoothing) / smoothing)
    result = fuse(scores, higher_is_better=higher, smoothing=smoothing)
    assert np.abs(result.logit).max() <= most + 1e-12
    assert np.abs(result.kappa).max() <= (methods - 1) / methods * most + 1e-12


@pytest.mark.parametrize(("methods", "cases"), [(2, 1), (5, 3), (8, 26)])
def test_a_clean_sweep_reaches_the_bound(methods, cases):
    scores = np.zeros((cases, methods))
    scores[:, 0] = 1
    bound = (methods - 1) / methods * math.log((cases + 0.5) / 0.5)
    assert fuse(scores).kappa[0] == pytest.approx(bound)


@given(designs(), st.data())
def test_a_method_that_always_wins_never_ranks_below(design, data):
    scores, higher = design
    better, worse = data.draw(st.permutations(range(scores.shape[1])))[:2]
    signs = np.where(higher, 1, -1)
    scores[:, better] = scores[:, worse] + signs * (
        1
        + np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(signs), max_size=len(signs))))
    )
    result = fuse(scores, higher_is_better=higher)
    assert result.kappa[better] > result.kappa[worse]


@given(designs(absent=True), st.data())
def test_more_wins_widen_the_gap_in_any_design(design, data):
    scores, higher = design
    before = fuse(scores, higher_is_better=higher)
    pairs = np.argwhere(before.compared > 0)
    winner, loser = data.draw(st.sampled_from(pairs.tolist()))
    extra = np.full((1, scores.shape[1]), NAN)
    extra[0, [winner, loser]] = 1, 0
    after = fuse(np.vstack([scores, extra]), higher_is_better=np.append(higher, True))
    gap = before.kappa[winner] - before.kappa[loser]
    # Where it already lost or won all, one more win still counts: L rises in every case.
    assert after.kappa[winner] - after.kappa[loser] > gap


def test_more_cases_of_the_same_outcome_are_more_evidence():
    scores = np.array([[2.0, 1.0, 0.0]])
    assert fuse(np.repeat(scores, 2, axis=0)).kappa[0] > fuse(scores).kappa[0] + 0.1


@pytest.mark.parametrize(
    "higher",
    [[True, False], (True, False), np.array([True, False]), [np.True_, np.False_]],
    ids=["list", "tuple", "array", "numpy bools"],
)
def test_directions_of_any_type(higher):
    assert fuse([[2, 1], [1, 2]], higher_is_better=higher).wins[0, 1] == 2
    assert fuse([[2, 1], [2, 1]], higher_is_better=np.bool_(False)).wins[0, 1] == 0


def test_single_method_and_none_as_absent():
    assert fuse([[1.0], [2.0]]).kappa.tolist() == [0.0]
    assert fuse([[1.0, 0.0], [None, 3.0]]).compared[0, 1] == 1


def test_disconnected_names_the_groups():
    scores = [[1, 2, NAN, NAN, NAN], [NAN, NAN, 1, NAN, 2]]
    with pytest.raises(DisconnectedError, match=r"0, 1 \| 2, 4 \| 3; add a case") as caught:
        fuse(scores)
    assert caught.value.groups == [["0", "1"], ["2", "4"], ["3"]]
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    with pytest.raises(DisconnectedError, match=r"ig, lrp \| rollout, flow \| cam"):
        fuse(scores, names=["ig", "lrp", "rollout", "cam", "flow"])
    with pytest.raises(ValueError, match=r"0 \| 1"):
        fuse(np.empty((0, 2)))


@given(designs(absent=True, methods=(2, 8)), designs(absent=True, methods=(2, 8)))
def test_disconnected_exactly_where_two_blocks_never_meet(first, second):
    left, right = first[0], second[0]
    gaps = np.full((len(left), right.shape[1]), NAN), np.full((len(right), left.shape[1]), NAN)
    both = np.block([[left, gaps[0]], [gaps[1], right]])
    with pytest.raises(DisconnectedError) as caught:
        fuse(both)
    names = [str(index) for index in range(both.shape[1])]
    assert caught.value.groups == [names[: left.shape[1]], names[left.shape[1] :]]
    bridge = np.zeros((1, both.shape[1]))
    bridge[0, 1:-1] = NAN
    assert np.isfinite(fuse(np.vstack([both, bridge])).kappa).all()


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([1, 2], {}, r"axes \[cases, methods\], not the shape \(2,\)"),
        ([[[1]]], {}, r"not the shape \(1, 1, 1\)"),
        (np.empty((3, 0)), {}, r"0 names do not fit scores of shape \(3, 0\)"),
        ([[1, math.inf]], {}, "finite; mark an absent"),
        ([[1, -math.inf]], {}, "finite; mark an absent"),
        ([[1, 2]], {"names": ["a"]}, "1 names do not fit"),
        ([[1, 2]], {"smoothing": 0}, "smoothing must be above 0 and finite, not 0"),
        ([[1, 2]], {"smoothing": NAN}, "smoothing must be above 0"),
        ([[1, 2]], {"smoothing": math.inf}, "smoothing must be above 0"),
        ([[1, 2]], {"clip": 0}, "clip must lie between 0 and 0.5, not 0"),
        ([[1, 2]], {"clip": 0.5}, "clip must lie between 0 and 0.5, not 0.5"),
        ([[1, 2]], {"tolerance": -1}, "tolerance must be one number >= 0"),
        ([[1, 2]], {"tolerance": NAN}, "tolerance must be one number >= 0"),
        ([[1, 2]], {"tolerance": [0, 0]}, "one for each of 1 cases"),
        ([[1, 2]], {"higher_is_better": [True, True]}, "one for each of 1 cases"),
        ([[1, 2]] * 2, {"higher_is_better": [True]}, "one for each of 2 cases"),
        ([[1, 2]], {"higher_is_better": [1]}, "one bool or one for each"),
        ([[1, 2]], {"higher_is_better": "no"}, "one bool or one for each"),
    ],
)
def test_bad_input_is_named(scores, options, message):
    with pytest.raises(ValueError, match=message):
        fuse(scores, **options)


def test_case_ranks_by_hand():
    np.testing.assert_array_equal(case_ranks([3, 9, NAN, 3, 1]), [2.5, 1, NAN, 2.5, 4])
    np.testing.assert_array_equal(
        case_ranks([3, 9, NAN, 3, 1], higher_is_better=False), [2.5, 4, NAN, 2.5, 1]
    )
    # 1 ties with 2 and 2 with 3, but 3 beats 1.
    np.testing.assert_array_equal(case_ranks([1, 2, 3], tolerance=1), [2.5, 2, 1.5])
    assert case_ranks([]).tolist() == []
    with pytest.raises(ValueError, match=r"axes \[methods\], not the shape \(1, 2\)"):
        case_ranks([[1, 2]])


@given(st.lists(st.integers(-3, 3).map(float) | st.just(NAN), min_size=1, max_size=8))
def test_case_ranks_agree_with_scipy(row):
    expected = rankdata(-np.array(row), method="average", nan_policy="omit")
    np.testing.assert_array_equal(case_ranks(row), expected)


def test_import_leaves_torch_alone():
    code = "import sys, attrcheck.metarank, attrcheck.gate; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@given(designs(absent=True, methods=(2, 9)), smoothings, tolerances)
def test_a_system_of_kinds_has_the_same_solution(design, smoothing, tolerance):
    scores, higher = design
    options = {"higher_is_better": higher, "smoothing": smoothing, "tolerance": tolerance}
    expected = fuse(scores, **options).kappa
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attrcheck.metarank.LARGE", 0)
        np.testing.assert_allclose(fuse(scores, **options).kappa, expected, atol=1e-12)


def test_many_methods_of_few_kinds_take_little_time():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(6, 1500))
    scores[:3, :200] = scores[3:, 200:400] = NAN
    start = time.process_time()
    result = fuse(scores)
    assert time.process_time() - start < 2
    assert abs(result.kappa.sum()) < 1e-9
    weights = result.compared > 0
    gap = np.where(weights, result.logit - (result.kappa[:, None] - result.kappa), 0.0)
    np.testing.assert_allclose(gap.sum(axis=1), 0, atol=1e-8)  # the normal equations hold
