from math import log
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.training import similarity as _similarity
from attrcheck.training.similarity import (
    label_difference,
    map_difference,
    similarity,
    total_variation,
)

REFERENCE = Path(__file__).parent.parent / "data" / "network_similarity.npz"
SEEDS = st.integers(0, 10**6)


def draw(seed: int, *shape: int, scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    layers = [nn.Conv2d(1, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 36, 3)]
    return prepare(nn.Sequential(*layers))


def test_published_outputs_of_two_models():
    with np.load(REFERENCE) as file:
        one, other = torch.from_numpy(file["logits_a"]), torch.from_numpy(file["logits_b"])
        labels = torch.from_numpy(file["targets"])
        at_the_label, over_classes = file["own_target_softmax_mad"], file["their_softmax_mad"]
    assert label_difference(one, other, labels) == pytest.approx(at_the_label, abs=1e-8)
    # The published figure averages over the 50 classes what total variation adds up and halves.
    assert total_variation(one, other) == pytest.approx(over_classes * 50 / 2, abs=1e-7)


def test_outputs_by_hand():
    one = torch.tensor([[0.0, log(3), log(4)], [0.0, 0.0, 0.0]])  # 1/8, 3/8, 4/8
    other = torch.tensor([[0.0, log(1), log(2)], [0.0, 0.0, 0.0]])  # 2/8, 2/8, 4/8
    assert label_difference(one, other, torch.tensor([1, 0])) == pytest.approx(1 / 16)
    assert label_difference(one, other, torch.tensor([2, 0])) == pytest.approx(0, abs=1e-7)
    assert total_variation(one, other) == pytest.approx(1 / 16)


def test_maps_by_hand():
    one = torch.tensor([[[0.0, 1.0], [2.0, 4.0]], [[7.0, 7.0], [7.0, 7.0]]])
    other = torch.tensor([[[3.0, 3.0], [3.0, 5.0]], [[0.0, 0.0], [0.0, 9.0]]])
    # 0, 1/4, 1/2, 1 against 0, 0, 0, 1; a constant map is zero against 0, 0, 0, 1.
    assert map_difference(one, other) == pytest.approx((3 / 4 + 1) / 8)
    assert map_difference(10 * one - 3, other) == pytest.approx((3 / 4 + 1) / 8)


@given(SEEDS, SEEDS, st.integers(1, 6), st.integers(2, 7), st.floats(0.01, 100))
def test_outputs_differ_within_bounds_and_both_ways_alike(seed, other_seed, n, classes, scale):
    one, other = draw(seed, n, classes, scale=scale), draw(other_seed, n, classes, scale=scale)
    labels = torch.arange(n) % classes
    at_label, variation = label_difference(one, other, labels), total_variation(one, other)
    assert 0 <= at_label <= variation + 1e-12
    assert variation <= 1 + 1e-12
    assert label_difference(other, one, labels) == at_label
    assert total_variation(other, one) == variation
    assert label_difference(one, one + 3, labels) == pytest.approx(0, abs=1e-5 * scale)
    assert total_variation(one, one) == 0


@given(SEEDS, SEEDS, st.integers(1, 4))
def test_maps_differ_within_bounds_and_both_ways_alike(seed, other_seed, n):
    one, other = draw(seed, n, 3, 4), draw(other_seed, n, 3, 4)
    assert 0 <= map_difference(one, other) <= 1
    assert map_difference(other, one) == map_difference(one, other)
    assert map_difference(one, 2 * one) == pytest.approx(0, abs=1e-6)


def test_a_network_is_like_itself_and_unlike_another():
    images, labels = draw(0, 5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])
    same = similarity(network(1), network(1), images, labels)
    assert same == {"label_probability": 0, "total_variation": 0, "gradcam": 0}
    apart = similarity(network(1), network(2), images, labels)
    assert all(value > 0.01 for value in apart.values())


def test_maps_are_those_for_the_label():
    images, labels = draw(0, 5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])
    pair = network(1), network(2)
    first, second = (similarity(*pair, images, targets) for targets in (labels, (labels + 1) % 3))
    assert first["gradcam"] != second["gradcam"]
    assert first["label_probability"] != second["label_probability"]
    assert first["total_variation"] == second["total_variation"]


def test_batches_do_not_matter(monkeypatch):
    images, labels = draw(0, 5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])
    whole = similarity(network(1), network(2), images, labels)
    monkeypatch.setattr(_similarity, "BATCH", 2)
    assert similarity(network(1), network(2), images, labels) == pytest.approx(whole, rel=1e-5)


def test_without_a_stage_there_is_no_gradcam():
    flat = prepare(nn.Sequential(nn.Flatten(), nn.Linear(64, 3)))
    images, labels = draw(0, 5, 1, 8, 8), torch.tensor([0, 1, 2, 0, 1])
    for pair in [(flat, network(1)), (network(1), flat)]:
        apart = similarity(*pair, images, labels)
        assert apart["gradcam"] is None
        assert apart["total_variation"] > 0
