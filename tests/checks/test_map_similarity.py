"""How alike maps are, and how complex, by hand and against a plain loop."""

import numpy as np
import pytest

from attrcheck.checks._similarity import complexity, rank_correlation, ssim
from tests import reference

STRIPES = np.array([[[0, 1], [0, 1]]], dtype=np.float32)


def maps(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def unit(one):
    return (one.astype(np.float64) - one.min()) / (one.max() - one.min())


def test_rank_correlation_by_hand():
    one = np.array([[[1.0, 2.0], [3.0, 4.0]]], dtype=np.float32)
    assert rank_correlation(one, 10 * one**3) == pytest.approx(1)
    assert rank_correlation(one, -one) == pytest.approx(-1)
    assert rank_correlation(one, 0 * one) == 0
    # Ranks 1, 2, 3, 4 against 1.5, 1.5, 3, 4: the covariance is 4.5, the variances 5 and 4.5.
    tied = np.array([[[1.0, 1.0], [3.0, 4.0]]], dtype=np.float32)
    assert rank_correlation(one, tied) == pytest.approx(4.5 / np.sqrt(5 * 4.5))


@pytest.mark.parametrize(
    ("other", "wanted"),
    [
        (STRIPES, 1),
        (5 * STRIPES - 3, 1),
        # Means .5, variances .25; the covariance is 0, then -.25.
        (np.array([[[0, 1], [1, 0]]]), 9e-4 / (0.5 + 9e-4)),
        (1 - STRIPES, (9e-4 - 0.5) / (0.5 + 9e-4)),
        # A constant map becomes zero: neither its mean nor its variance is that of stripes.
        (0 * STRIPES + 7, 1e-4 / (0.25 + 1e-4) * 9e-4 / (0.25 + 9e-4)),
    ],
)
def test_ssim_by_hand(other, wanted):
    assert ssim(STRIPES, np.asarray(other, dtype=np.float32)) == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("shape", [(12, 9), (7, 7), (5, 11), (1, 4)])
def test_ssim_is_that_of_the_loop(shape):
    one, other = maps(0, 3, *shape), maps(1, 3, *shape)
    other = one + 0.5 * other
    wanted = [reference.ssim(unit(a), unit(b)) for a, b in zip(one, other, strict=True)]
    assert ssim(one, other) == pytest.approx(np.mean(wanted), rel=1e-9)
    assert ssim(other, one) == pytest.approx(ssim(one, other))


def test_ssim_falls_with_noise():
    one = maps(0, 2, 16, 16)
    curve = [ssim(one, one + size * maps(1, 2, 16, 16)) for size in (0, 0.1, 0.5, 2, 100)]
    assert curve[0] == pytest.approx(1)
    assert curve == sorted(curve, reverse=True)
    assert abs(curve[-1]) < 0.1


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        ([7, 7, 7, 7], 0),
        ([0, 0, 0, 1], -0.75 * np.log(0.75) - 0.25 * np.log(0.25)),
        ([0, 1, 2, 3], np.log(4)),
        ([0, 0.001, 1, 1], np.log(2)),  # the first two share one of 100 bins
        ([-5, 0, 5, 5], 1.5 * np.log(2)),  # shares of 1/4, 1/4 and 1/2
    ],
)
def test_complexity_is_the_entropy_of_a_histogram_by_hand(values, wanted):
    one = np.array(values, dtype=np.float32).reshape(1, 2, 2)
    assert complexity(one) == pytest.approx([wanted])
    assert complexity(np.concatenate([one, 3 * one + 1])) == pytest.approx([wanted] * 2)


def test_complexity_takes_as_many_bins_as_it_is_told_and_fills_them_at_most():
    even = np.linspace(0, 1, 1000, dtype=np.float32).reshape(1, 20, 50)
    assert complexity(even) == pytest.approx([np.log(100)], abs=1e-3)
    assert complexity(even, bins=2) == pytest.approx([np.log(2)])
