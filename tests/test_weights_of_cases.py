"""Cases that weigh: what the fusion makes of weights."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrcheck import metarank
from attrcheck.consistency import study
from attrcheck.contracts import Case
from attrcheck.metarank import fuse
from attrcheck.report.weighing import weights
from attrcheck.table import Table
from attrcheck.tallies import standings, tally, weighted
from tests.score_tables import NAN

SEEDS = st.integers(0, 2**32 - 1)


def some(seed, cases=6, methods=4):
    """Scores with ties and gaps; of the first method in all cases, so that all are linked."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 5, size=(cases, methods)) / 4
    scores[:, 1:][rng.random((cases, methods - 1)) < 0.2] = NAN
    scores[0] = rng.random(methods)
    return rng, scores


@given(SEEDS, st.floats(1e-6, 1e6))
def test_equal_weights_are_none_to_the_bit(seed, weight):
    _, scores = some(seed)
    plain, weighing = fuse(scores), fuse(scores, weights=np.full(len(scores), weight))
    for name in ("kappa", "residual", "probability", "logit", "wins", "compared"):
        np.testing.assert_array_equal(getattr(weighing, name), getattr(plain, name))


@given(SEEDS)
def test_twice_all_weights_change_nothing(seed):
    rng, scores = some(seed)
    given_weights = rng.random(len(scores)) + 0.1
    once, twice = fuse(scores, weights=given_weights), fuse(scores, weights=2 * given_weights)
    np.testing.assert_array_equal(twice.kappa, once.kappa)
    assert twice.residual == once.residual


@given(SEEDS)
def test_a_case_of_weight_two_is_the_case_twice(seed):
    """Who beat whom how often, exactly; so the paper's fusion, which is of shares alone, too."""
    _, scores = some(seed)
    repeated = np.concatenate([scores, scores[:1]])
    twice = [2.0] + [1.0] * (len(scores) - 1)
    parts = weighted([(2.0, tally(scores[:1])), (1.0, tally(scores[1:]))])
    whole = tally(repeated)
    for name in ("twice", "compared", "present"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    one, other = fuse(scores, weights=twice, clip=0.1), fuse(repeated, clip=0.1)
    np.testing.assert_allclose(one.kappa, other.kappa, atol=1e-12)
    np.testing.assert_allclose(one.probability, other.probability, atol=1e-12)


@given(SEEDS)
def test_weight_may_move_between_two_copies_of_a_case(seed):
    _, scores = some(seed)
    copies = np.concatenate([scores, scores[:1]])
    rest = [1.0] * (len(scores) - 1)
    moved = fuse(copies, weights=[1.5, *rest, 0.5])
    np.testing.assert_allclose(moved.kappa, fuse(copies).kappa, atol=1e-12)


def test_by_hand():
    """Three cases, 2:1 for the first method, and the one that it lost counts as much as both."""
    found = fuse([[1, 0], [1, 0], [0, 1]], weights=[1, 1, 2])
    assert found.kappa.tolist() == [0, 0]
    # Weights 3:1 have a sum of 2: wins 1.5, lost 0.5.
    found = fuse([[1, 0], [0, 1]], weights=[3, 1])
    assert found.kappa[0] == pytest.approx(math.log((1.5 + 0.5) / (0.5 + 0.5)) / 2)


@pytest.mark.parametrize("wrong", [[1, 1], [1, 0, 1], [1, -1, 1], [1, NAN, 1], [1, math.inf, 1]])
def test_bad_weights_are_refused(wrong):
    with pytest.raises(ValueError, match="one number > 0 for each of 3 cases"):
        fuse(np.eye(3), weights=wrong)


@given(SEEDS)
def test_samples_weigh_as_the_board_does(seed):
    rng, scores = some(seed, methods=3)
    scores = np.where(np.isnan(scores), 0.0, scores)
    given_weights = rng.random(len(scores)) + 0.1
    cases = [standings(case[None]) for case in scores]
    [sample] = metarank.resample(cases, "aaaaaa", samples=1, weights=given_weights)
    np.testing.assert_allclose(sample, fuse(scores, weights=given_weights).kappa, atol=1e-12)


def test_each_scheme_gives_what_it_names_the_same_sum():
    cases = [Case.of(case) for case in ("a-x-morf", "a-x-lerf", "a-x-sds", "a-y-morf")]
    families = {"morf": "ablation", "lerf": "ablation", "sds": "single_deletion"}
    assert weights(cases, "equal", families) is None
    assert weights(cases, "pair", families).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    assert weights(cases, "family", families).tolist() == pytest.approx([1 / 3, 1 / 3, 1, 1 / 3])


@given(SEEDS)
def test_what_the_board_is_without_a_case_weighs_the_others(seed):
    rng, scores = some(seed, methods=4)
    cases = [Case("a", "x", f"p{at}") for at in range(len(scores))]
    given_weights = rng.integers(1, 4, len(scores)).astype(float)
    table = Table(
        cases, list("wxyz"), scores, np.ones(len(scores), dtype=bool), weights=given_weights
    )
    for out in range(len(scores)):
        rest = np.delete(np.arange(len(scores)), out)
        factors = np.delete(given_weights / given_weights.mean(), out)
        parts = [(factor, tally(scores[[at]])) for factor, at in zip(factors, rest, strict=True)]
        np.testing.assert_array_equal(table.board([out]), metarank.board(weighted(parts)))


def test_a_heavy_case_decides_who_would_win_without_it():
    cases = [Case.of(case) for case in ("a-x-one", "a-x-two", "a-x-three")]
    scores = np.array([[3, 2, 1, 0], [0, 1, 2, 3], [3, 2, 1, 0]], dtype=float)
    up = np.ones(3, dtype=bool)
    light = study(Table(cases, list("wxyz"), scores, up))
    heavy = study(Table(cases, list("wxyz"), scores, up, weights=np.array([1.0, 5.0, 1.0])))
    [without] = [change for change in light.without_protocol if change.protocol == "two"]
    assert not without.winner_changes
    [without] = [change for change in heavy.without_protocol if change.protocol == "two"]
    assert without.winner_changes
    assert without.winners == ["w"]
