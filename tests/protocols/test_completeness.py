"""Completeness: published figures, by hand, what it sees of values, and what goes at each step."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.protocols.completeness import Completeness, completeness
from tests.worlds import batch_of, linear_model, rows_of, soundness_vectors

SIDE = 6
MEAN = Completeness(removal="mean")


@pytest.mark.parametrize("name", ["ixg", "ixg_pow3", "ixg_scaled", "random"])
def test_accuracy_differences_are_the_published_ones(name, exact_linear):
    """Theirs are relative to each map's maximum, as by our default normalisation."""
    network, images, labels, maps, published = soundness_vectors()
    protocol = Completeness(removal=exact_linear)
    batch = batch_of(images, labels, network)
    reduced = protocol.reduce(rows_of(protocol, network, batch, maps[name]))
    thresholds, lost = reduced.curve
    assert thresholds == [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]
    wanted = np.rint(60 * published[f"comp_dacc_{name}"]).tolist()
    assert (60 * np.array(lost)).round(9).tolist() == wanted
    assert reduced.score == pytest.approx(sum(wanted) / 60 / 9)


def test_halving_a_map_matters_only_where_it_is_taken_at_its_word():
    network, images, labels, maps, _ = soundness_vectors()
    batch = batch_of(images, labels, network)
    scores = {
        (how, name): protocol.reduce(rows_of(protocol, network, batch, maps[name])).score
        for how in ("max", "clip")
        for protocol in [replace(MEAN, normalisation=how)]
        for name in ("ixg", "ixg_scaled")
    }
    assert scores["max", "ixg"] == scores["max", "ixg_scaled"] == scores["clip", "ixg"]
    assert scores["clip", "ixg"] > scores["clip", "ixg_scaled"] > 0


def test_by_hand():
    # Right while the sum of the pixels is positive; .9 and .5 are above some thresholds.
    model = linear_model(torch.ones(1, 3))
    images = torch.tensor([[[[4.0, -1.0, -2.0]]], [[[1.0, 1.0, 1.0]]], [[[-1.0, 0.0, 0.0]]]])
    maps = torch.tensor([[[0.9, 0.5, 0.0]], [[0.9, 0.5, 0.0]], [[0.9, 0.5, 0.0]]])
    protocol = replace(MEAN, normalisation="clip", tenths=(9, 5, 4))
    rows = rows_of(protocol, model, batch_of(images, torch.ones(3, dtype=torch.int64), model), maps)
    # Above .9 is nothing: the float32 next to it is a little less. Above .5 is the first pixel.
    assert maps[0, 0, 0].double() < 0.9
    assert rows["correct"].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]]
    reduced = protocol.reduce(rows)
    assert reduced.curve == ([0.9, 0.5, 0.4], [0, 1 / 3, 1 / 3])
    assert reduced.score == 2 / 9
    assert reduced.per_image.tolist() == pytest.approx([2 / 3, 0, 0])


def test_a_map_may_be_right_to_remove_what_misleads():
    """The image is wrong, and right without its first pixel: a negative score."""
    model = linear_model(torch.ones(1, 2))
    images, maps = torch.tensor([[[[-3.0, 1.0]]]]), torch.tensor([[[1.0, 0.0]]])
    batch = batch_of(images, torch.tensor([1]), model)
    assert MEAN.reduce(rows_of(MEAN, model, batch, maps)).score == -1


def test_a_flat_map_is_undefined_and_counted():
    model = linear_model(torch.ones(SIDE, SIDE))
    batch = batch_of(torch.rand(4, 1, SIDE, SIDE), torch.ones(4, dtype=torch.int64), model)
    maps = torch.rand(4, SIDE, SIDE)
    maps[1], maps[2] = 0.3, -maps[2]
    rows = rows_of(MEAN, model, batch, maps)
    assert rows["defined"].tolist() == [True, False, False, True]
    reduced = MEAN.reduce(rows)
    assert np.isnan(reduced.per_image).tolist() == [False, True, True, False]
    assert reduced.undefined == 2
    alone = MEAN.reduce({name: row[[0, 3]] for name, row in rows.items()})
    assert (reduced.score, reduced.curve) == (alone.score, alone.curve)
    nothing = MEAN.reduce({name: row[1:3] for name, row in rows.items()})
    assert np.isnan(nothing.score)
    assert nothing.undefined == 2


@given(st.integers(0, 2**32 - 1))
def test_what_goes_at_a_high_threshold_goes_at_a_lower_one(seed):
    torch.manual_seed(seed)
    seen = []

    class Look(torch.nn.Module):
        def forward(self, images):
            seen.append(images[:, 0] == 0)
            return images.sum((2, 3)).expand(-1, 2)

    images, maps = torch.rand(2, 1, SIDE, SIDE) + 1, torch.randn(2, SIDE, SIDE)
    batch = batch_of(images, torch.tensor([0, 1]), Look())
    seen.clear()
    rows_of(MEAN, Look(), batch, maps)
    assert len(seen) == 9
    for before, after in itertools.pairwise(seen):
        assert (before <= after).all()
    share = maps.double() / maps.double().amax((1, 2), keepdim=True)
    assert torch.equal(seen[0], share > 0.9)
    assert torch.equal(seen[-1], share > 0.1)


@given(st.integers(0, 2**32 - 1))
def test_scores_are_in_range_and_the_mean_over_images_is_the_score(seed):
    torch.manual_seed(seed)
    model = linear_model(torch.randn(SIDE, SIDE))
    batch = batch_of(torch.randn(5, 1, SIDE, SIDE), torch.randint(0, 2, (5,)), model)
    reduced = MEAN.reduce(rows_of(MEAN, model, batch, torch.randn(5, SIDE, SIDE)))
    assert -1 <= reduced.score <= 1
    assert reduced.score == pytest.approx(reduced.per_image.mean())


def test_normalisation_is_declared():
    assert "normalisation='max'" in repr(completeness())
    assert replace(MEAN, normalisation="clip").observation != MEAN.observation
    assert (completeness().removal, completeness().most_images) == ("noisy_linear", None)
