import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from attrcheck.consistency import (
    Agreements,
    Concordance,
    band,
    concordance,
    correlations,
    study,
)
from attrcheck.table import Table
from tests.score_tables import NAN, slow_correlation, table, tables


def slow_pairs(given):
    """(level, ids) -> correlation, case by case."""
    sign = np.where(given.higher_is_better, 1, -1)
    found = {}
    for i, one in enumerate(given.cases):
        for j, other in enumerate(given.cases):
            same = [getattr(one, k) == getattr(other, k) for k in ("dataset", "model", "protocol")]
            if sum(same) == 2:
                level = ("dataset", "model", "protocol")[same.index(False)]
                value = slow_correlation(sign[i] * given.scores[i], sign[j] * given.scores[j])
                found[level, frozenset((one.id, other.id))] = value
    return found


def slow_w(rows):
    """Kendall's W as textbooks write it: 12 S / (n^2 (m^3 - m) - n T)."""
    ranks = [stats.rankdata(row) for row in rows]
    n, m = len(rows), len(rows[0])
    spread = ((np.sum(ranks, axis=0) - n * (m + 1) / 2) ** 2).sum()
    tied = sum(sum(t**3 - t for t in np.unique(r, return_counts=True)[1]) for r in ranks)
    return 12 * spread / (n**2 * (m**3 - m) - n * tied)


def known(found):
    return {(p.level, frozenset((p.one, p.other))): p for p in found.pairs}


# Pairs of cases


@given(tables())
def test_pairs_are_those_of_the_oracle(given):
    expected = slow_pairs(given)
    found = study(given)
    for level in ("dataset", "model", "protocol"):
        own = [value for (at, _), value in expected.items() if at == level]
        facts = found.levels[level]
        assert facts.pairs == len(own)
        assert facts.undefined == own.count(None)
        defined = [value for value in own if value is not None]
        assert facts.mean == (pytest.approx(np.mean(defined)) if defined else None)
        assert sum(getattr(facts, name) for name in ("strong", "moderate", "weak")) == len(defined)
    defined = {key: value for key, value in expected.items() if value is not None}
    assert {key: p.rank_correlation for key, p in known(found).items()} == pytest.approx(defined)


@given(tables(), st.randoms(use_true_random=False))
def test_the_order_of_cases_and_methods_does_not_matter(given, random):
    rows, columns = list(range(len(given.cases))), list(range(len(given.methods)))
    random.shuffle(rows)
    random.shuffle(columns)
    other = Table(
        [given.cases[row] for row in rows],
        [given.methods[column] for column in columns],
        given.scores[rows][:, columns],
        given.higher_is_better[rows],
    )
    one, two = study(given), study(other)
    pair = {key: value.rank_correlation for key, value in known(one).items()}
    assert {k: v.rank_correlation for k, v in known(two).items()} == pytest.approx(pair)
    assert vars(one.concordance) == pytest.approx(vars(two.concordance))
    for level, facts in one.levels.items():
        assert vars(facts) == pytest.approx(vars(two.levels[level]))
    assert {e.case: e for e in one.cases} == {e.case: e for e in two.cases}
    assert one.without_protocol == two.without_protocol


@given(tables())
def test_any_increasing_transform_of_a_case_changes_nothing(given):
    bent = given.scores.copy()
    bent[::2] = np.exp(bent[::2]) - 40
    changed = Table(given.cases, given.methods, bent, given.higher_is_better)
    turned = Table(given.cases, given.methods, -given.scores, ~given.higher_is_better)
    assert study(changed) == study(given) == study(turned)


@given(tables())
def test_correlations_are_symmetric_and_within_their_range(given):
    ranks = given.ranks
    one, other = (np.repeat(ranks, len(ranks), axis=0), np.tile(ranks, (len(ranks), 1)))
    square = correlations(one, other).reshape(len(ranks), len(ranks))
    np.testing.assert_array_equal(square, square.T)
    assert np.all((np.abs(square) <= 1) | np.isnan(square))
    own = np.diag(square)
    assert np.all((own == 1) | np.isnan(own))


def test_each_level_has_its_pairs():
    ids = ["a-x-up", "a-x-down", "a-y-up", "b-x-up", "b-y-down"]
    found = study(table([[1, 2, 3, 4]] * 5, ids))
    sets = {(p.level, p.one, p.other) for p in found.pairs}
    assert sets == {
        ("protocol", "a-x-up", "a-x-down"),
        ("model", "a-x-up", "a-y-up"),
        ("dataset", "a-x-up", "b-x-up"),
    }
    assert found.protocols["up"]["model"].strong == 1
    assert found.protocols["up"]["protocol"].pairs == 1
    assert found.protocols["down"]["protocol"].pairs == 1
    assert found.protocols["down"]["model"].pairs == 0


def test_a_correlation_by_hand():
    """Ranks 1234 and 2143 differ by one each: 1 - 6 * 4 / (4 * 15) = 0.6."""
    [pair] = study(table([[9, 7, 5, 3], [7, 9, 3, 5]])).pairs
    assert pair.rank_correlation == 0.6
    assert pair.band == "moderate"


def test_direction_is_taken_into_account():
    [pair] = study(table([[1, 2, 3, 4], [4, 3, 2, 1]], higher=[True, False])).pairs
    assert pair.rank_correlation == 1


def test_only_common_methods_count_and_at_least_four():
    rows = [[1, 2, 3, 4, 9, NAN], [1, 2, 3, 4, NAN, 0]]
    found = study(table(rows))
    assert [pair.rank_correlation for pair in found.pairs] == [1]
    rows[1][0] = NAN
    found = study(table(rows))
    assert found.pairs == []
    assert found.levels["model"] == Agreements(
        pairs=1, strong=0, moderate=0, weak=0, undefined=1, mean=None
    )


def test_scores_within_the_tolerance_tie():
    rows = [[1, 2, 3, 3 + 1e-12], [1, 2, 3 + 1e-12, 3]]
    assert study(table(rows, tolerance=1e-9)).pairs[0].rank_correlation == 1
    assert study(table(rows)).pairs[0].rank_correlation == 0.8


@pytest.mark.parametrize(
    ("value", "name"),
    [(1, "strong"), (0.8001, "strong"), (0.8, "moderate"), (0.6, "moderate"), (0.59, "weak")],
)
def test_bands(value, name):
    assert band(value) == name


def test_every_correlation_of_four_methods_that_is_0_8_is_moderate():
    """A rounding error must not lift it over the border."""
    for order in itertools.permutations(range(4)):
        [pair] = study(table([[0, 1, 2, 3], order])).pairs
        exact = 1 - sum((a - b) ** 2 for a, b in enumerate(order)) / 10
        expected = "strong" if exact > 0.85 else "moderate" if exact > 0.55 else "weak"
        assert pair.band == expected


def test_checkpoints_are_a_level_like_the_others():
    given = [("d-m0-p", "at_25", 0.5), ("d-m0-p", "at_50", 0.7), ("d-m0-p", "at_75", 0.9)]
    found = study(table([[1, 2, 3, 4]]), [*given, ("d-m0-p", "at_10", NAN)])
    facts = found.levels["checkpoint"]
    assert {name: getattr(facts, name) for name in ("strong", "moderate", "weak", "undefined")} == {
        "strong": 1, "moderate": 1, "weak": 1, "undefined": 1,
    }  # fmt: skip
    assert facts.mean == pytest.approx(0.7)
    assert found.protocols["p"]["checkpoint"] == facts


def test_pairs_come_in_the_order_of_their_cases():
    ids = ["a-x-p", "b-x-p", "a-y-p", "a-x-q", "b-y-p"]
    pairs = study(table([[1, 2, 3, 4]] * 5, ids)).pairs
    assert [(pair.one, pair.other) for pair in pairs] == [
        ("a-x-p", "b-x-p"), ("a-x-p", "a-y-p"), ("a-x-p", "a-x-q"),
        ("b-x-p", "b-y-p"), ("a-y-p", "b-y-p"),
    ]  # fmt: skip


def test_many_correlations_are_computed_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    ids = [f"d-m{index}-p" for index in range(12)]
    given = table(rng.normal(size=(12, 5)), ids)
    whole = study(given)
    monkeypatch.setattr("attrcheck.consistency.ROWS", 5)
    assert study(given) == whole


# Kendall's W


def w(rows):
    return concordance(np.array(rows, dtype=float))


@given(arrays(float, st.tuples(st.integers(2, 6), st.integers(4, 8)), elements=st.integers(0, 9)))
def test_w_is_that_of_textbooks_and_within_its_range(rows):
    assume(any(len(set(row)) > 1 for row in rows.tolist()))
    found = w(rows).w
    assert found == pytest.approx(slow_w(rows), abs=1e-9)
    assert 0 <= found <= 1
    assert w(-rows).w == w(np.exp(rows)).w == w(rows[::-1, ::-1]).w == found


@given(st.integers(2, 6), st.permutations(range(6)))
def test_w_is_1_for_identical_and_0_for_opposite_rankings(cases, order):
    assert w([order] * cases).w == 1
    opposite = [-value for value in order]
    assert w([order, opposite] * cases).w == 0
    # An odd number of cases leaves one of them unanswered: |r|^2 / (n^2 |r|^2).
    odd = 2 * cases + 1
    assert w([order, opposite] * cases + [order]).w == pytest.approx(1 / odd**2)


@given(st.lists(st.permutations(range(5)), min_size=3, max_size=3))
def test_without_ties_w_follows_from_the_mean_correlation(orders):
    """W = ((n - 1) * mean of Spearman + 1) / n."""
    rows = np.array(orders, dtype=float)
    pairs = np.array(list(itertools.combinations(range(3), 2)))
    mean = correlations(rows[pairs[:, 0]], rows[pairs[:, 1]]).mean()
    assert w(rows).w == pytest.approx((2 * mean + 1) / 3)


def test_w_by_hand():
    """Ranks 1234, 2143 and, with ties, 1.5 1.5 3.5 3.5 add up to 4.5 4.5 10.5 10.5.

    S = 4 * 3^2 = 36 around 7.5; two ties of two take T = 12; W = 12 * 36 / (9 * 60 - 3 * 12).
    """
    assert w([[1, 2, 3, 4], [2, 1, 4, 3], [5, 5, 6, 6]]).w == pytest.approx(6 / 7)


def test_w_takes_the_methods_that_have_a_rank_everywhere():
    rows = [[1, 2, 3, 4, 1.5], [1, 2, 3, 4, NAN], [NAN] * 5]
    assert w(rows) == Concordance(w=1, cases=2, methods=4, of=5, problem="")


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (np.empty((0, 5)), "two cases"),
        ([[1, 2, 3, 4]], "two cases"),
        ([[NAN] * 4] * 3, "two cases"),
        ([[1, 2, 3], [1, 2, 3]], "fewer than 4 methods have a score in all 2 cases"),
        ([[1, 2, 3, 4, NAN], [NAN, 1, 2, 3, 4]], "fewer than 4 methods"),
        ([[1, 1, 1, 1], [2, 2, 2, 2]], "all methods tie"),
    ],
)
def test_where_w_is_undefined_it_says_why(rows, problem):
    found = w(rows)
    assert found.w is None
    assert problem in found.problem
