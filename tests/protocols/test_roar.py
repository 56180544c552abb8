"""Remove and retrain: what is removed, what the networks learn from, and how they score."""

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.contracts import Batch, Retraining
from attrcheck.protocols.roar import BRIEF, Roar, roar

ROAR = Roar(at=(3, 9), training_images=6, epochs=2)


class Pixel(nn.Module):
    """Two logits: nothing, and the sum of what is left."""

    def forward(self, images):
        total = images.sum((1, 2, 3))
        return torch.stack([torch.zeros_like(total), total], 1)


def test_each_network_learns_without_the_top_of_every_map_and_sees_images_without_it():
    images = torch.arange(1.0, 101).view(1, 1, 10, 10).repeat(2, 1, 1, 1)
    maps = torch.stack([images[0, 0], -images[1, 0]])
    learnt = []

    def learn(images, epochs):
        learnt.append((images, epochs))
        return Pixel()

    networks = ROAR.retrain(Retraining(images, (1, 2), maps, learn))
    assert [epochs for _, epochs in learnt] == [2, 2]
    for (left, _), count in zip(learnt, (30, 90), strict=True):
        gone = left[:, 0] == 0
        assert torch.equal(gone[0], images[0, 0] > 100 - count)
        assert torch.equal(gone[1], images[1, 0] <= count)
    batch = Batch(images, torch.ones(2, dtype=torch.long), (1, 2), {})
    rows = ROAR.observe(networks, batch, maps, {})
    # What is left: 1 .. 70 or 1 .. 10, and 31 .. 100 or 91 .. 100.
    assert rows["logit"].tolist() == [[2485, 55], [4585, 955]]


def test_the_score_is_the_mean_accuracy():
    rows = {"correct": np.array([[True, False], [True, True], [False, False]])}
    reduced = ROAR.reduce(rows)
    assert reduced.score == pytest.approx(0.5)
    assert reduced.per_image.tolist() == [0.5, 1.0, 0.0]
    assert reduced.curve == ([0.3, 0.9], pytest.approx([2 / 3, 1 / 3]))


def test_a_case_retrains_for_every_method_once_and_counts_it(tiny, monkeypatch):
    monkeypatch.setitem(BRIEF["smoke"], "training_images", 64)
    case = {"profile": "smoke", "images": 6, "methods": ("input_x_gradient_abs",)}
    (first,) = tiny.run("digits-resnet-roar", **case).outcomes.values()
    assert 0 <= first.score <= 1
    # A network of two epochs on 64 images, and their maps; then six images.
    assert first.passes["observation"] == [(2 * 64 + 64 + 6) / 6, (2 * 64 + 64) / 6]
    monkeypatch.setattr(Roar, "retrain", None)
    (again,) = tiny.run("digits-resnet-roar", **case).outcomes.values()
    assert again.score == first.score


def test_it_has_one_network_in_smoke_and_five_in_full():
    assert [roar(profile).at for profile in ("smoke", "default", "full")] == [
        (5,),
        (5, 9),
        (1, 3, 5, 7, 9),
    ]
