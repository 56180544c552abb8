"""Ranks of pixels and how many of them go: permutations, ties, nesting and what is remembered."""

import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attrcheck.protocols import order
from attrcheck.protocols.order import least, most, pixel_counts, ranks_of

SIDE = 4
SEEDS = (0, 1, 2)

maps_with_ties = arrays("float32", (3, SIDE, SIDE), elements=st.integers(-3, 3)).map(
    torch.from_numpy
)


def test_counts_are_rounded_from_exact_fractions():
    assert pixel_counts(10, (0, 1, 2, 3, 4), 4) == [0, 3, 5, 8, 10]  # 2.5 and 7.5 round up
    assert pixel_counts(7, tuple(range(8)), 7) == list(range(8))
    # In floats 1024 * 0.29 is 296.96 and int() would lose the pixel.
    assert pixel_counts(1024, (29,), 100) == [297]


@given(st.integers(1, 5000), st.integers(1, 64))
def test_counts_rise_from_nothing_to_everything(pixels, steps):
    counts = pixel_counts(pixels, tuple(range(steps + 1)), steps)
    assert counts[0] == 0
    assert counts[-1] == pixels
    assert counts == sorted(counts)


@given(maps_with_ties, st.integers(0, SIDE * SIDE))
def test_what_one_order_takes_first_the_other_takes_last(maps, count):
    """Ties included: both orders read the same ranks."""
    ranks = ranks_of(maps, SEEDS)
    assert torch.equal(most(ranks, count), ~least(ranks, SIDE * SIDE - count))
    assert (most(ranks, count).sum((1, 2)) == count).all()


@given(maps_with_ties, st.integers(0, SIDE * SIDE - 1))
def test_removed_sets_are_nested(maps, count):
    ranks = ranks_of(maps, SEEDS)
    for gone in (least, most):
        assert (gone(ranks, count) <= gone(ranks, count + 1)).all()


@given(maps_with_ties, st.integers(0, 2**62))
def test_ranks_are_a_permutation_that_follows_the_values(maps, seed):
    ranks = ranks_of(maps, (seed, seed + 1, seed + 2))
    for places, values in zip(ranks.flatten(1), maps.flatten(1), strict=True):
        assert sorted(places.tolist()) == list(range(SIDE * SIDE))
        assert values[places.argsort()].tolist() == sorted(values.tolist())


def test_ties_are_broken_by_the_seed_alone():
    flat = torch.zeros(2, SIDE, SIDE)
    first = ranks_of(flat, (1, 2))
    assert torch.equal(first, ranks_of(flat, (1, 2)))
    assert torch.equal(first[:1], ranks_of(flat[:1], (1,)))
    assert not torch.equal(first[0], first[1])
    assert torch.equal(first, ranks_of(-flat, (1, 2)))  # -0.0 is no smaller than 0.0


def test_ranks_are_remembered_and_forgotten(monkeypatch):
    calls, rank = [], order._rank
    monkeypatch.setattr(order, "_rank", lambda *given: calls.append(1) or rank(*given))
    monkeypatch.setattr(order, "RANKS", type(order.RANKS)())
    monkeypatch.setattr(order, "KEPT_BYTES", 2 * 4 * SIDE * SIDE)  # of two maps
    one, two, three = torch.randn(3, 1, SIDE, SIDE)
    for maps in (one, one.clone(), two, one):
        ranks_of(maps, (0,))
    assert len(calls) == 2
    ranks_of(three, (0,))  # `two` was asked for longest ago
    ranks_of(one, (0,))
    assert len(calls) == 3
    ranks_of(two, (0,))
    assert len(calls) == 4
    ranks_of(two, (1,))
    assert len(calls) == 5
