"""Standings, and tallies that are added and taken away."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.metarank import scale
from attrcheck.tallies import standings, tally
from tests import reference

NAN = math.nan
SEEDS = st.integers(0, 2**32 - 1)


def random_scores(seed, cases=9, methods=6, absent=0.2):
    """Scores with many ties and gaps."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 12, size=(cases, methods)) * 0.25
    scores[rng.random(scores.shape) < absent] = NAN
    return scores, rng.random(cases) < 0.5


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.2, 0.25, 0.4, 1.0]))
def test_standings_tell_who_beats_whom_as_the_scores_do(seed, tolerance):
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 12, size=(4, 6)) * 0.25
    scores[rng.random(scores.shape) < 0.2] = NAN
    found = standings(scores, tolerance)
    if found.dtype == np.float64:
        np.testing.assert_array_equal(found, scores)
        return
    for row, numbers in zip(scores, found, strict=True):
        np.testing.assert_array_equal(numbers == 0, np.isnan(row))
        for i in np.flatnonzero(numbers):
            for j in np.flatnonzero(numbers):
                assert (numbers[i] > numbers[j]) == (row[i] - row[j] > tolerance)


def test_ties_that_do_not_chain_stay_scores():
    row = [[0.0, 0.6, 1.2]]
    assert standings(row, 1.0).dtype == np.float64
    assert standings(row, 0.5).tolist() == [[1, 2, 3]]
    assert standings(row, 1.2).tolist() == [[1, 1, 1]]


def test_standings_take_a_byte_while_there_are_few_methods():
    assert standings(np.arange(255.0)[None]).dtype == np.uint8
    assert standings(np.arange(256.0)[None]).dtype == np.uint16
    assert standings(np.arange(256.0)[None])[0].tolist() == list(range(1, 257))


# Tallies


def same(one, other):
    for name in ("twice", "compared", "present"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


@given(SEEDS, st.sampled_from([0.0, 0.25, 0.4]), st.sampled_from([1, 100, 2**19]))
def test_a_tally_counts_as_the_oracle_does(seed, tolerance, block):
    scores, higher = random_scores(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("attrcheck.tallies.BLOCK", block)
        found = tally(scores, higher_is_better=higher, tolerance=tolerance)
    _, wins, compared = reference.fuse(scores, higher, tolerance=tolerance)
    np.testing.assert_array_equal(found.wins, wins)
    np.testing.assert_array_equal(found.compared, compared)
    np.testing.assert_array_equal(found.present, np.isfinite(scores).sum(axis=0))


@given(SEEDS, st.sampled_from([0.0, 0.4]), st.integers(0, 9))
def test_cases_are_taken_away_and_added_exactly(seed, tolerance, some):
    scores, higher = random_scores(seed)

    def of(part):
        return tally(scores[part], higher_is_better=higher[part], tolerance=tolerance)

    whole, first, rest = of(slice(None)), of(slice(some)), of(slice(some, None))
    same(whole - first, rest)
    same(first + rest, whole)
    # The same integers give the same scale, to the bit.
    left, expected = scale(whole - first), scale(rest)
    assert (left is None) == (expected is None)
    if left is not None:
        np.testing.assert_array_equal(left, expected)


def test_more_cases_than_a_byte_can_count():
    row = np.array([[3.0, 2.0, 1.0, NAN]])
    tied = np.array([[1.0, 1.0, 2.0, 3.0]])
    found = tally(np.concatenate([np.repeat(row, 600, axis=0), np.repeat(tied, 300, axis=0)]))
    assert found.wins[0].tolist() == [0, 750, 600, 0]
    assert found.wins[3].tolist() == [300, 300, 300, 0]
    assert found.compared[0].tolist() == [0, 900, 900, 300]
