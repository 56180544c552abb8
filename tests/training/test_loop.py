from dataclasses import asdict, replace
from math import ceil

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.datasets import DatasetError, digits
from attrcheck.datasets.digits import digits as load_digits
from attrcheck.models import model
from attrcheck.training.loop import RECIPES, Recipe, accuracy, recipe_for, shifted, train, trained
from attrcheck.training.weights import CHECKPOINTS, load_weights, read_about

SHORT = Recipe(epochs=2, batch=16)
vgg = model.get("vgg").build


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    """A training split of 80 images is enough to see that training runs."""
    everything = digits.training
    monkeypatch.setattr(digits, "training", lambda: tuple(part[:80] for part in everything()))


@pytest.mark.parametrize("family", ["resnet", "vgg"])
def test_four_checkpoints_that_load(tmp_path, family):
    lines = []
    train(load_digits(), family, model.get(family).build, SHORT, tmp_path, report=lines.append)
    assert len(lines) == 4
    assert lines[-1].startswith(f"digits-{family} at 100%: accuracy 0.")
    data = load_digits()
    network = model.get(family).build(data)
    for percent in CHECKPOINTS:
        load_weights(network, "digits", family, percent, tmp_path)
        about = read_about("digits", family, percent, tmp_path)
        assert about["epoch"] == 2 * percent / 100
        assert about["recipe"]["batch"] == 16
        assert about["accuracy"] == pytest.approx(
            accuracy(network, data.normalise(data.images), data.labels), abs=1e-6
        )


def test_the_seed_decides_and_the_global_generator_is_left_alone(tmp_path):
    hashes = []
    state = torch.random.get_rng_state()
    for number, seed in enumerate([3, 3, 4]):
        folder = tmp_path / str(number)
        train(load_digits(), "vgg", vgg, SHORT, folder, seed, report=lambda _: None)
        hashes.append(read_about("digits", "vgg", folder=folder)["sha256"])
    assert hashes[0] == hashes[1] != hashes[2]
    assert torch.equal(torch.random.get_rng_state(), state)


def test_without_a_training_split_there_is_nothing_to_learn(tmp_path):
    bare = Dataset(
        "bare", torch.zeros(1, 1, 32, 32), torch.zeros(1, dtype=torch.int64),
        2, (0.0,), (1.0,), ("bare/0",),
    )  # fmt: skip
    with pytest.raises(DatasetError, match="dataset 'bare' has no training split"):
        train(bare, "vgg", vgg, folder=tmp_path)


def drawn():
    """A network that draws random numbers itself, and keeps more than weights."""
    layers = nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(), nn.Flatten()
    return nn.Sequential(*layers, nn.Linear(4 * 30 * 30, 10))


def by_hand(recipe, images, labels, seed, change):
    """What training by a recipe comes to, written out; states after each step."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = drawn().train()
        steps = recipe.epochs * ceil(len(images) / recipe.batch)
        optimiser = torch.optim.AdamW(
            network.parameters(), lr=recipe.rate, weight_decay=recipe.decay
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimiser, recipe.rate, total_steps=steps, pct_start=recipe.warmup
        )
        states = []
        for _ in range(recipe.epochs):
            for chosen in torch.split(torch.randperm(len(images)), recipe.batch):
                batch = change(shifted(images[chosen], recipe.shift))
                loss = F.cross_entropy(network(batch), labels[chosen])
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                schedule.step()
                states.append({key: part.clone() for key, part in network.state_dict().items()})
    return states


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("recipe", [SHORT, Recipe(epochs=3, batch=33, warmup=0.3, shift=1)])
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda batch: batch, id="plain"),
        pytest.param(lambda batch: batch + torch.rand(1), id="augmented"),
    ],
)
def test_a_trained_network_is_the_same_to_the_bit_as_by_hand(recipe, change):
    data = load_digits()
    images, labels = data.training()
    images = data.normalise(images)
    network = trained(drawn, images, labels, recipe, 5, change)
    assert not network.training
    assert same(network.state_dict(), by_hand(recipe, images, labels, 5, change)[-1])


@pytest.mark.parametrize("epochs", [1, 2])
def test_checkpoints_are_the_same_to_the_bit_as_by_hand(tmp_path, epochs):
    """Looking at the accuracy in between changes nothing, nor do marks that fall together."""
    data, recipe = load_digits(), Recipe(epochs=epochs, batch=50)
    images, labels = data.training()
    states = by_hand(recipe, data.normalise(images), labels, 3, lambda batch: batch)
    train(data, "drawn", lambda data: drawn(), recipe, tmp_path, 3, report=lambda _: None)
    for percent in CHECKPOINTS:
        network = drawn()
        load_weights(network, "digits", "drawn", percent, tmp_path)
        assert same(network.state_dict(), states[ceil(len(states) * percent / 100) - 1])


def test_shifting_moves_images_within_bounds():
    images = torch.arange(36.0).view(1, 1, 6, 6).repeat(200, 1, 1, 1)
    moved = shifted(images, 2)
    assert moved.shape == images.shape
    centres = {tuple(divmod(int(image[0, 3, 3]), 6)) for image in moved}
    assert centres == {(row, column) for row in range(1, 6) for column in range(1, 6)}
    assert torch.equal(shifted(images, 0), images)


@pytest.mark.parametrize("name", ["digits", "objects", "shapes"])
@pytest.mark.parametrize("family", ["resnet", "vit", "bcos", "bagnet", "efficientnet", "inception"])
def test_the_shipped_weights_follow_the_recipe(name, family):
    recipe = recipe_for(name, family)
    assert read_about(name, family)["recipe"] == asdict(recipe)
    shared = RECIPES.get(f"{name}-{family}", RECIPES.get(name, Recipe()))
    assert replace(recipe, rate=shared.rate) == shared
    assert (recipe.rate < shared.rate) == (family == "vit")
