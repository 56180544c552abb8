"""Removing and retraining, step by step, and what makes the judge one."""

from dataclasses import replace

import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.checks import roar as module
from attrcheck.checks._training import accuracy, trained
from attrcheck.checks.roar import of_training, ranked, retrained, roar, verdict
from attrcheck.loading import load
from attrcheck.models._train import Recipe


def smoke(lab):
    return replace(lab, settings=replace(lab.settings, profile="smoke"))


def test_training_images_take_the_place_of_those_held_out():
    setup = load("digits", "resnet", 6, "cpu")
    learnt = of_training(setup, 5)
    images, labels = setup.dataset.training()
    assert torch.equal(learnt.images, setup.dataset.normalise(images[:5]))
    assert torch.equal(learnt.labels, labels[:5])
    assert len(set(learnt.dataset.ids)) == 5
    assert not set(learnt.dataset.ids) & set(setup.dataset.ids)
    assert learnt.network is setup.network


def test_what_is_removed_is_the_top_of_each_map_in_both_splits(monkeypatch, lab_of):
    setup = load("digits", "resnet", 6, "cpu")
    learnt = of_training(setup, 5)
    seen = []

    def train(build, images, labels, recipe, seed):
        seen.append(images)
        return lambda images: seen.append(images) or torch.zeros(len(images), 10)

    monkeypatch.setattr(module, "trained", train)
    ranks = [ranked(part, "input_x_gradient", 0) for part in (learnt, setup)]
    retrained(setup, learnt, ranks, 3, smoke(lab_of()))
    for left, part, places in zip(seen, (learnt, setup), ranks, strict=True):
        gone = places >= 1024 - 307
        assert torch.equal(left[:, 0] == 0, gone | (part.images[:, 0] == 0))
        assert torch.equal(left[:, 0][~gone], part.images[:, 0][~gone])


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
    right = (one(images).argmax(1) == labels).double().mean().item()
    assert accuracy(one, images, labels) == pytest.approx(right)


def test_a_dataset_or_model_that_cannot_be_learnt_anew_is_said_so(tiny, lab_of):
    found = roar(smoke(lab_of()), "tiny", "linear")
    assert (found.passed, found.reason) == (
        None,
        "the dataset has no training split to retrain on",
    )
    attrcheck.dataset("tinier", offers=("training",))(
        lambda: tiny.dataset(
            "tinier", training=lambda: (torch.rand(9, 2, 5, 5), torch.arange(9) % 3)
        )
    )
    found = roar(smoke(lab_of()), "tinier", "linear")
    assert (found.passed, found.reason) == (
        None,
        "only embedded models are built without weights, to learn anew",
    )


def test_a_judge_that_misses_noise_most_fails():
    # Chance, two standard errors, is .1 on 200 images.
    figures = {"random": 0.8, "gradcam": 0.65, "saliency": 0.85}
    assert verdict(figures, 200).passed
    found = verdict(figures | {"gradcam": 0.75}, 200)
    assert found.passed is False
    assert found.reason == (
        "no method is missed more than noise, 0.800: gradcam 0.750, saliency 0.850"
    )


@pytest.mark.slow
def test_a_run_has_a_figure_for_every_method_and_fraction(lab_of):
    figures = roar(smoke(lab_of()), "digits", "resnet").figures
    names = ("random", *module.METHODS)
    assert set(figures) == {*names, *(f"{name}_50" for name in names)}
    assert all(0 <= each <= 1 for each in figures.values())
