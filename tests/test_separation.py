import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from attrcheck import metarank
from attrcheck.separation import LETTERS, cliques, separate
from attrcheck.tallies import standings

NAN = math.nan


def told(kappa, samples, pairs=1):
    """All methods took part in all of the pairs."""
    return separate(np.array(kappa), np.array(samples), np.ones((pairs, len(kappa)), dtype=bool))


def letters(found):
    return [found.letters(at) for at in range(len(found.apart))]


def noise(spread, samples=4000, seed=0):
    """Independent errors of methods, [samples, methods]."""
    return np.random.default_rng(seed).normal(0, spread, size=(samples, len(spread)))


def test_of_two_methods_the_margin_is_that_of_one_difference():
    samples = np.array([1.2, 0.0]) + noise([0.3, 0.4])
    found = told([1.2, 0.0], samples)
    assert found.margins[0, 1] == pytest.approx(1.96 * 0.5, rel=0.05)
    assert found.apart.tolist() == [[False, True], [True, False]]
    assert letters(found) == ["a", "b"]


def test_of_many_alike_the_margin_is_that_of_tukey():
    """max |e_i - e_j| / sqrt(2) over ten: the studentised range with infinite freedom."""
    found = told(np.zeros(10), noise([1.0] * 10, 20_000))
    tukey = stats.studentized_range.ppf(0.95, 10, 10_000) / math.sqrt(2)
    assert found.critical == pytest.approx(tukey, rel=0.02)  # 3.16, where one pair has 1.96
    assert letters(found) == ["a"] * 10


def test_methods_that_move_together_are_told_apart_though_their_intervals_overlap():
    common = np.random.default_rng(0).normal(size=(2000, 1))
    samples = np.array([0.1, 0.0]) + common + noise([0.01, 0.01], 2000)
    low, high = metarank.ends(samples)
    assert low[0] < high[1]
    assert told([0.1, 0.0], samples).apart[0, 1]


def test_few_pairs_widen_the_margin_as_students_t_does():
    samples = np.array([1.0, 0.0]) + noise([0.3, 0.4], 50_000)
    plain, five = told([1.0, 0.0], samples), told([1.0, 0.0], samples, pairs=5)
    # 2.776 is the 97.5% quantile with four degrees of freedom.
    wider = 2.776 / 1.960 * math.sqrt(5 / 4)
    assert five.margins[0, 1] / plain.margins[0, 1] == pytest.approx(wider, rel=0.02)


def test_a_method_of_one_pair_among_many_is_told_from_nobody():
    taking_part = np.ones((6, 3), dtype=bool)
    taking_part[1:, 0] = False
    samples = np.array([9.0, 1.0, 0.0]) + noise([0.01] * 3)
    found = separate(np.array([9.0, 1.0, 0.0]), samples, taking_part)
    assert np.isinf(found.margins[0, 1:]).all()
    assert letters(found) == ["ab", "a", "b"]
    assert found.best.tolist() == [1, 1, 2]
    assert found.worst.tolist() == [3, 2, 3]


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [(1, ["a", "b", "b"]), (2, ["a", "a", "a"]), (5, ["a", "a", "a"]), (6, ["a", "b", "b"])],
)
def test_what_never_varies_is_told_apart_unless_so_few_pairs_agree_by_chance(pairs, expected):
    """2^(1-6) is the first below 5%."""
    found = told([1.0, 0.0, 0.0], np.tile([1.0, 0.0, 0.0], (50, 1)), pairs)
    assert letters(found) == expected


def test_without_samples_or_rivals_nothing_is_told():
    assert told([1.0, 0.0], np.empty((0, 2))) is None
    assert told([0.0], np.zeros((10, 1))) is None


def test_letters_overlap_where_the_middle_is_like_both_ends():
    """The textbook's display: a, ab, b."""
    samples = np.array([0.5, 0.0, -0.5]) + noise([0.18] * 3)
    found = told([0.5, 0.0, -0.5], samples)
    assert letters(found) == ["a", "ab", "b"]
    assert found.best.tolist() == [1, 1, 2]
    assert found.worst.tolist() == [2, 3, 3]


@given(st.integers(1, 9), st.integers(0, 2**32 - 1), st.floats(0, 1))
def test_two_share_a_letter_exactly_if_they_are_alike(size, seed, density):
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((size, size)) < density, 1)
    alike = upper | upper.T | np.eye(size, dtype=bool)
    names = rng.permutation(size)
    groups = cliques(alike, names)
    place = {int(name): at for at, name in enumerate(names)}
    shared = np.zeros((size, size), dtype=bool)
    for group in groups:
        at = [place[int(name)] for name in group]
        shared[np.ix_(at, at)] = True
    np.testing.assert_array_equal(shared, alike)
    firsts = [min(place[int(name)] for name in group) for group in groups]
    assert firsts == sorted(firsts)  # the letter a is that of the top


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_the_order_of_methods_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    kappa = rng.normal(size=6)
    samples = kappa + rng.normal(0, 0.4, size=(200, 6))
    order = rng.permutation(6)
    plain, moved = told(kappa, samples, pairs=9), told(kappa[order], samples[:, order], pairs=9)
    assert [plain.letters(at) for at in order] == letters(moved)
    np.testing.assert_allclose(moved.margins, plain.margins[np.ix_(order, order)], atol=1e-9)


def test_when_letters_run_out_there_are_none():
    size = len(LETTERS) + 1
    kappa = np.arange(size, dtype=float)
    found = told(kappa, np.tile(kappa, (10, 1)))
    assert set(letters(found)) == {""}
    assert found.best.tolist() == found.worst.tolist() == list(range(size, 0, -1))


@pytest.mark.slow
@pytest.mark.parametrize("groups", [8, 16])
def test_equal_methods_are_told_apart_in_one_run_of_twenty_at_most(groups):
    """Twelve methods that differ by chance alone on each dataset x model: any claim is an error."""
    rng = np.random.default_rng(groups)
    errors = [claims_anything(rng, groups, methods=12) for _ in range(100)]
    assert np.mean(errors) < 0.1  # two standard errors above 5%; 20% without Student's t


def claims_anything(rng, groups, methods):
    scores, replicates, labels = [], [], []
    for group in range(groups):
        skill = rng.normal(0, 0.5, methods)
        for _ in range(6):
            case = skill + rng.normal(0, 0.55, methods)
            scores.append(case)
            replicates.append(standings(case + rng.normal(0, 0.2, (60, methods))))
            labels.append(f"{group:02d}")
    kappa = metarank.fuse(scores).kappa
    samples = metarank.resample(replicates, labels, samples=300)
    return separate(kappa, samples, np.ones((groups, methods), dtype=bool)).apart.any()
