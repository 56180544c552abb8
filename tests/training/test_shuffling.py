"""Shuffled labels, and the models that ship which know some by heart."""

import pytest
import torch
from torch import nn

from attrcheck.contracts import Dataset
from attrcheck.datasets import DatasetError
from attrcheck.datasets import dataset as datasets
from attrcheck.models import model as models
from attrcheck.training.loop import Recipe, accuracy
from attrcheck.training.shuffling import IMAGES, shuffled, train_shuffled
from attrcheck.training.weights import SHUFFLED, load_weights, read_about, weights_path


def noise(count=40, training=True):
    images = torch.rand(count, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(count) % 2
    split = (lambda: (images, labels)) if training else None
    ids = tuple(f"n{i}" for i in range(count))
    return Dataset("noise", images, labels, 2, (0.5,), (0.3,), ids, training=split)


def network(data):
    return nn.Sequential(nn.Flatten(), nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, data.classes))


def test_shuffled_labels_are_the_same_labels_in_an_order_that_the_seed_decides():
    labels = torch.arange(100) % 10
    mixed = shuffled(labels, seed=0)
    assert torch.equal(mixed.sort().values, labels.sort().values)
    assert 0 < (mixed == labels).float().mean() < 0.3
    assert torch.equal(mixed, shuffled(labels, seed=0))
    assert not torch.equal(mixed, shuffled(labels, seed=1))


def test_training_learns_them_by_heart_and_says_so(tmp_path):
    data, told = noise(), []
    recipe = Recipe(epochs=60, batch=10, decay=0.0, shift=0, rate=1e-2)
    train_shuffled(data, "net", network, recipe, tmp_path, seed=3, report=told.append)
    about = read_about("noise", "net", SHUFFLED, tmp_path)
    assert (about["accuracy"], about["seed"], about["images"]) == (1.0, 3, 40)
    assert told == ["noise-net on shuffled labels: 1.0000 of them known by heart"]
    fresh = network(data)
    load_weights(fresh, "noise", "net", SHUFFLED, tmp_path)
    images = data.normalise(data.images)
    assert accuracy(fresh, images, shuffled(data.labels, 3)) == 1
    assert accuracy(fresh, images, data.labels) < 0.8


def test_without_a_training_split_there_is_nothing_to_learn(tmp_path):
    with pytest.raises(DatasetError, match="'noise' has no training split"):
        train_shuffled(noise(training=False), "net", network, folder=tmp_path)


def test_weights_that_are_missing_come_with_the_command_that_makes_them(tmp_path):
    with pytest.raises(Exception, match="attrcheck train --shuffled --datasets noise --models net"):
        read_about("noise", "net", SHUFFLED, tmp_path)


@pytest.mark.parametrize(
    ("name", "family"),
    [("digits", "resnet"), pytest.param("shapes", "vit", marks=pytest.mark.slow)],
)
def test_what_ships_knows_the_shuffled_labels_of_its_seed(name, family):
    about = read_about(name, family, SHUFFLED)
    assert (about["accuracy"], about["seed"], about["images"]) == (1.0, 0, IMAGES)
    assert weights_path(name, family, SHUFFLED).stat().st_size < 500_000
    data = datasets.get(name).load()
    built = models.get(family).network(data)
    load_weights(built, name, family, SHUFFLED)
    images, labels = data.training()
    images, labels = data.normalise(images[:IMAGES]), labels[:IMAGES]
    assert accuracy(built, images, shuffled(labels, 0)) > 0.99
    chance = 1 / data.classes
    assert accuracy(built, images, labels) < 2.5 * chance
