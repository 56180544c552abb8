"""MoRF and LeRF: hand-computed, against an oracle, and their laws."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attrcheck.outcomes import outcome
from attrcheck.protocols import Batch
from attrcheck.protocols._ablation import Ablation, pixel_counts, removal_ranks
from attrcheck.protocols.lerf import lerf
from attrcheck.protocols.morf import morf
from tests import reference

SIDE = 4


def batch_of(images, labels, model, seeds=None):
    seeds = tuple(range(len(images))) if seeds is None else seeds
    return Batch(images, labels, seeds, outcome(model, images, labels))


def rows_of(protocol, model, batch, maps):
    return protocol.observe(model, batch, maps, protocol.shared(model, batch))


def linear_model(weight):
    """Two classes: the logit of class 1 is the weighted sum of the pixels, that of class 0 is 0."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(weight.numel(), 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.stack([torch.zeros(weight.numel()), weight.flatten()]))
    return model


@st.composite
def scenes(draw, images=3):
    """A random linear model, images, labels and maps with ties."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pixels = rng.normal(size=(images, 1, SIDE, SIDE))
    model = linear_model(torch.tensor(rng.normal(size=(SIDE, SIDE)), dtype=torch.float32))
    labels = torch.from_numpy(rng.integers(0, 2, images))
    maps = torch.from_numpy(rng.integers(-3, 4, (images, SIDE, SIDE)).astype(np.float32))
    batch = batch_of(torch.tensor(pixels, dtype=torch.float32), labels, model)
    return model, batch, maps


def test_counts_are_rounded_from_exact_fractions():
    assert pixel_counts(10, 4) == [0, 3, 5, 8, 10]  # 2.5 and 7.5 round up
    assert pixel_counts(7, 7) == list(range(8))
    # In floats 1024 * 0.29 is 296.96 and int() would lose the pixel.
    assert pixel_counts(1024, 100)[29] == 297


@given(st.integers(1, 5000), st.integers(1, 64))
def test_counts_rise_from_nothing_to_everything(pixels, steps):
    counts = pixel_counts(pixels, steps)
    assert counts[0] == 0
    assert counts[-1] == pixels
    assert counts == sorted(counts)


def test_hand_computed_areas():
    # Label 1 while the sum is positive. Pixels 3, -1, -1, 0 in a row; the map says 3 > 0 > -1.
    model = linear_model(torch.ones(1, 4))
    images = torch.tensor([[[[3.0, -1.0, -1.5, 0.0]]]])
    batch = batch_of(images, torch.tensor([1]), model)
    maps = torch.tensor([[[3.0, -1.0, -1.5, 0.0]]])
    most = Ablation(most_relevant_first=True, higher_is_better=False, steps=4)
    least = Ablation(most_relevant_first=False, higher_is_better=True, steps=4)
    # Most first: sums .5, -2.5, -2.5, -1.5, 0; a sum of 0 ties and argmax takes class 0.
    rows = rows_of(most, model, batch, maps)
    assert rows["correct"].tolist() == [[True, False, False, False, False]]
    assert rows["logit"].tolist() == [[0.5, -2.5, -2.5, -1.5, 0.0]]
    assert most.reduce(rows).score == 0.125  # trapezoid: half of one of four steps
    # Least first: sums .5, 2, 3, 3, 0.
    rows = rows_of(least, model, batch, maps)
    assert rows["logit"].tolist() == [[0.5, 2.0, 3.0, 3.0, 0.0]]
    assert least.reduce(rows).score == 0.875
    assert least.reduce(rows).curve == ([0, 0.25, 0.5, 0.75, 1], [1, 1, 1, 1, 0])


def test_probability_and_logit_come_from_the_same_pass():
    model = linear_model(torch.ones(1, 2))
    rows = outcome(model, torch.tensor([[[[1.0, 0.5]]]]), torch.tensor([1]))
    assert rows["logit"].tolist() == [1.5]
    assert rows["probability"] == pytest.approx(1 / (1 + np.exp(-1.5)))


@given(scenes())
def test_rows_equal_those_of_the_oracle(scene):
    model, batch, maps = scene
    for protocol in (morf(), lerf()):
        rows = rows_of(protocol, model, batch, maps)
        slow = reference.ablation(
            model,
            batch.images,
            batch.labels,
            maps,
            batch.seeds,
            protocol.steps,
            most_relevant_first=protocol.most_relevant_first,
        )
        np.testing.assert_allclose(rows["logit"], slow["logit"], atol=1e-5)
        reduced = protocol.reduce(rows)
        assert reduced.score == pytest.approx(reference.area(rows["correct"]))
        assert reduced.score == pytest.approx(reduced.per_image.mean())


@given(scenes())
def test_morf_of_a_map_is_lerf_of_its_negation(scene):
    model, batch, maps = scene
    most = rows_of(morf(), model, batch, maps)
    least = rows_of(lerf(), model, batch, -maps)
    for name in most:
        assert np.array_equal(most[name], least[name])


@given(scenes(), st.lists(st.floats(-1e6, 1e6, width=32), min_size=7, max_size=7, unique=True))
def test_any_strictly_increasing_transform_changes_nothing(scene, values):
    model, batch, maps = scene
    table = torch.tensor(sorted(values))  # the maps hold the integers -3 .. 3
    transformed = table[maps.long() + 3]
    for protocol in (morf(), lerf()):
        plain = rows_of(protocol, model, batch, maps)
        bent = rows_of(protocol, model, batch, transformed)
        assert all(np.array_equal(plain[name], bent[name]) for name in plain)


@given(scenes(images=5), st.permutations(range(5)), st.integers(1, 4))
def test_rows_do_not_depend_on_batch_size_or_order(scene, order, size):
    model, batch, maps = scene
    whole = rows_of(morf(), model, batch, maps)
    for start in range(0, 5, size):
        part = order[start : start + size]
        small = batch_of(
            batch.images[part], batch.labels[part], model, tuple(batch.seeds[i] for i in part)
        )
        rows = rows_of(morf(), model, small, maps[part])
        assert np.array_equal(rows["correct"], whole["correct"][part])
        np.testing.assert_allclose(rows["logit"], whole["logit"][part], atol=1e-5)


@given(scenes())
def test_score_is_in_range(scene):
    model, batch, maps = scene
    for protocol in (morf(), lerf()):
        assert 0 <= protocol.reduce(rows_of(protocol, model, batch, maps)).score <= 1


@given(scenes(), st.integers(0, 2**62))
def test_ranks_are_a_permutation_that_follows_the_values(scene, seed):
    _, _, maps = scene
    ranks = removal_ranks(maps, (seed, seed + 1, seed + 2))
    for each, values in zip(ranks.flatten(1), maps.flatten(1), strict=True):
        assert sorted(each.tolist()) == list(range(SIDE * SIDE))
        assert values[each.argsort()].tolist() == sorted(values.tolist())


def test_ties_are_broken_by_the_seed_alone():
    flat = torch.zeros(2, SIDE, SIDE)
    first = removal_ranks(flat, (1, 2))
    assert torch.equal(first, removal_ranks(flat, (1, 2)))
    assert torch.equal(first[:1], removal_ranks(flat[:1], (1,)))
    assert not torch.equal(first[0], first[1])
    assert torch.equal(first, removal_ranks(-flat, (1, 2)))  # -0.0 is no smaller than 0.0


def test_equal_areas_are_exactly_equal():
    # The same area from different steps: floats summed in another order would differ.
    early = np.array([[1, 1, 0, 0, 1]] * 7 + [[1, 0, 0, 0, 0]], dtype=bool)
    late = np.array([[1, 0, 0, 1, 1]] * 7 + [[1, 0, 0, 0, 0]], dtype=bool)
    assert morf().reduce({"correct": early}).score == morf().reduce({"correct": late}).score


def test_the_ends_are_not_observed_again():
    model, calls = linear_model(torch.ones(SIDE, SIDE)), []
    batch = batch_of(torch.randn(2, 1, SIDE, SIDE), torch.tensor([0, 1]), model)
    shared = morf().shared(model, batch)
    model.register_forward_hook(lambda *_: calls.append(1))
    morf().observe(model, batch, torch.randn(2, SIDE, SIDE), shared)
    assert len(calls) == morf().steps - 1
