"""Average ranks and Spearman's correlation: by hand, against scipy, and where floats tell lies."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from attrcheck.ranks import average_ranks, spearman


@st.composite
def tables(draw):
    """Two [N, P] of small whole numbers, so that there are ties, or of any floats."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.integers(1, 4)), draw(st.integers(2, 20))
    if draw(st.booleans()):
        return tuple(rng.integers(-2, 3, shape).astype(float) for _ in range(2))
    return tuple(rng.normal(size=shape) * 10.0 ** draw(st.integers(-8, 8)) for _ in range(2))


def test_ranks_by_hand():
    assert average_ranks([[30, 10, 20]]).tolist() == [[3, 1, 2]]
    assert average_ranks([[1, 1, 0, 1]]).tolist() == [[3, 3, 1, 3]]
    assert average_ranks([[5, 5], [1, 2]]).tolist() == [[1.5, 1.5], [1, 2]]


@given(tables())
def test_ranks_are_those_of_scipy(pair):
    np.testing.assert_array_equal(average_ranks(pair[0]), stats.rankdata(pair[0], axis=1))


@given(tables())
def test_spearman_is_that_of_scipy(pair):
    found = spearman(*pair)
    for rho, one, other in zip(found, *pair, strict=True):
        if np.ptp(one) == 0 or np.ptp(other) == 0:
            assert np.isnan(rho)
        else:
            assert rho == pytest.approx(stats.spearmanr(one, other).statistic, abs=1e-12)


@given(tables())
def test_spearman_is_within_its_bounds_and_symmetric(pair):
    one, other = pair
    found = spearman(one, other)
    defined = np.isfinite(found)
    assert (np.abs(found[defined]) <= 1).all()
    np.testing.assert_allclose(found, spearman(other, one), atol=1e-12)
    np.testing.assert_allclose(found, -spearman(-one, other), atol=1e-12)
    varied = np.ptp(one, axis=1) > 0
    np.testing.assert_allclose(spearman(one, one)[varied], 1, atol=1e-12)


@given(tables(), st.integers(0, 3))
def test_rows_do_not_look_at_each_other(pair, at):
    at = min(at, len(pair[0]) - 1)
    alone = spearman(pair[0][at : at + 1], pair[1][at : at + 1], 1e-9)
    np.testing.assert_array_equal(alone, spearman(*pair, 1e-9)[at : at + 1])


def test_values_within_the_tolerance_tie():
    row = [[0.0, 1.0, 1.0 + 1e-10, 10.0]]
    assert average_ranks(row).tolist() == [[1, 2, 3, 4]]
    assert average_ranks(row, 1e-10).tolist() == [[1, 2.5, 2.5, 4]]  # 1e-9 at most
    assert average_ranks(row, 1e-12).tolist() == [[1, 2, 3, 4]]


def test_the_tolerance_is_that_of_the_row():
    rows = [[1.0, 1.0 + 1e-8, 2.0], [1.0, 1.0 + 1e-8, 1e3]]
    assert average_ranks(rows, 1e-9).tolist() == [[1, 2, 3], [1.5, 1.5, 3]]


def test_sums_that_rounding_alone_keeps_apart_are_no_ranking():
    nearly = [[0.1 + 0.2, 0.3, 0.3, 0.3]]
    assert np.ptp(nearly) > 0
    assert np.isnan(spearman(nearly, [[1, 2, 3, 4]], 1e-9)[0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_has_no_correlation_and_harms_no_other(bad):
    rows = [[bad, 1.0, 2.0], [3.0, 1.0, 2.0], [1.0, bad, bad]]
    ramp = [[1.0, 2.0, 3.0]] * 3
    for found in (spearman(rows, ramp, 1e-9), spearman(ramp, rows)):
        assert np.isnan(found[[0, 2]]).all()
        assert found[1] == pytest.approx(-0.5)
