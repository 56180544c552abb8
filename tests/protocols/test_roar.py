"""Remove and retrain: what is removed, who learns from it, and what it is called."""

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.contracts import Batch, Retraining
from attrcheck.engine.attribution import Reattribution
from attrcheck.engine.evaluation import find
from attrcheck.engine.retraining import of_training, retraining
from attrcheck.protocols.roar import BRIEF, Roar, roar
from attrcheck.training.loop import Recipe, trained
from tests.worlds import load

JUDGE = Roar(at=(3, 9), training_images=6, epochs=2)


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

    judges = JUDGE.retrain(Retraining(images, (1, 2), maps, learn))
    assert [epochs for _, epochs in learnt] == [2, 2]
    for (left, _), count in zip(learnt, (30, 90), strict=True):
        gone = left[:, 0] == 0
        assert torch.equal(gone[0], images[0, 0] > 100 - count)
        assert torch.equal(gone[1], images[1, 0] <= count)
    batch = Batch(images, torch.ones(2, dtype=torch.long), (1, 2), {})
    rows = JUDGE.observe(judges, batch, maps, {})
    # What is left: 1 .. 70 or 1 .. 10, and 31 .. 100 or 91 .. 100.
    assert rows["logit"].tolist() == [[2485, 55], [4585, 955]]


def test_the_score_is_the_mean_accuracy():
    rows = {"correct": np.array([[True, False], [True, True], [False, False]])}
    found = JUDGE.reduce(rows)
    assert found.score == pytest.approx(0.5)
    assert found.per_image.tolist() == [0.5, 1.0, 0.0]
    assert found.curve == ([0.3, 0.9], pytest.approx([2 / 3, 1 / 3]))


def test_training_images_take_the_place_of_those_held_out():
    pair = load("digits", "resnet", 6, "cpu")
    learnt = of_training(pair, 5)
    images, labels = pair.dataset.training()
    assert torch.equal(learnt.images, pair.dataset.normalise(images[:5]))
    assert torch.equal(learnt.labels, labels[:5])
    assert len(set(learnt.dataset.ids)) == 5
    assert not set(learnt.dataset.ids) & set(pair.dataset.ids)
    assert learnt.network is pair.network


def test_retraining_gets_the_methods_maps_and_networks_that_start_alike():
    pair = load("digits", "resnet", 6, "cpu")
    retrial = Reattribution(find("gradient"), pair, seed=0)
    given = retraining(retrial, pair, 8)
    learnt = of_training(pair, 8)
    direct = find("gradient").attribute(pair.network, learnt.images, learnt.labels)
    assert torch.allclose(given.maps, direct.sum(1) if direct.ndim == 4 else direct, atol=1e-5)
    absolute = retraining(Reattribution(find("gradient"), pair, seed=0, absolute=True), pair, 8)
    assert torch.equal(absolute.maps, given.maps.abs())
    one, again = (given.learn(given.images, 1) for _ in range(2))
    other = given.learn(torch.zeros_like(given.images), 1)
    with torch.no_grad():
        logits = [network(pair.images) for network in (one, again, other)]
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])
    # Eight maps, and three epochs of eight images.
    assert retrial.passes.tolist() == [8 + 24, 8 + 24]


def test_training_is_decided_by_its_seed_and_leaves_the_generator_alone():
    images = torch.rand(40, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    labels = (images.mean((1, 2, 3)) > 0.5).long()
    recipe = Recipe(epochs=3, batch=8, rate=0.05, shift=0)

    def build():
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 2))

    state = torch.random.get_rng_state()
    one, again, other = (trained(build, images, labels, recipe, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(one[1].weight, again[1].weight)
    assert not torch.equal(one[1].weight, other[1].weight)


def test_a_case_retrains_for_every_method_once_and_counts_it(tiny, monkeypatch):
    monkeypatch.setitem(BRIEF["smoke"], "training_images", 64)
    case = {"profile": "smoke", "images": 6, "methods": ("input_x_gradient_abs",)}
    (found,) = tiny.run("digits-resnet-roar", **case).outcomes.values()
    assert 0 <= found.score <= 1
    # A network of two epochs on 64 images, and their maps; then six images.
    assert found.passes["observation"] == [(2 * 64 + 64 + 6) / 6, (2 * 64 + 64) / 6]
    monkeypatch.setattr(Roar, "retrain", None)
    (again,) = tiny.run("digits-resnet-roar", **case).outcomes.values()
    assert again.score == found.score


def test_it_has_one_network_in_smoke_and_five_in_full():
    assert [roar(profile).at for profile in ("smoke", "default", "full")] == [
        (5,),
        (5, 9),
        (1, 3, 5, 7, 9),
    ]
