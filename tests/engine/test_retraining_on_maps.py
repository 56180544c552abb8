"""Retraining: the training images, the maps of them, and networks that start alike."""

import torch
from torch import nn

from attrcheck.engine.attribution import Reattribution
from attrcheck.engine.finding import find
from attrcheck.engine.retraining import of_training, retraining
from attrcheck.training.loop import Recipe, trained
from tests.worlds import load


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
    again = Reattribution(find("gradient"), pair, seed=0)
    given = retraining(again, pair, 8)
    learnt = of_training(pair, 8)
    direct = find("gradient").attribute(pair.network, learnt.images, learnt.labels)
    assert torch.allclose(given.maps, direct.sum(1) if direct.ndim == 4 else direct, atol=1e-5)
    absolute = retraining(Reattribution(find("gradient"), pair, seed=0, absolute=True), pair, 8)
    assert torch.equal(absolute.maps, given.maps.abs())
    one, same = (given.train(given.images, 1) for _ in range(2))
    other = given.train(torch.zeros_like(given.images), 1)
    with torch.no_grad():
        logits = [network(pair.images) for network in (one, same, other)]
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])
    # Eight maps, and three epochs of eight images.
    assert again.passes.tolist() == [8 + 24, 8 + 24]


def test_training_is_decided_by_its_seed_and_leaves_the_generator_alone():
    images = torch.rand(40, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    labels = (images.mean((1, 2, 3)) > 0.5).long()
    recipe = Recipe(epochs=3, batch=8, rate=0.05, shift=0)

    def build():
        return nn.Sequential(nn.Flatten(), nn.Linear(16, 2))

    state = torch.random.get_rng_state()
    one, same, other = (trained(build, images, labels, recipe, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.equal(one[1].weight, same[1].weight)
    assert not torch.equal(one[1].weight, other[1].weight)
