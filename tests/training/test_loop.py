from dataclasses import asdict, replace

import pytest
import torch

from attrcheck.contracts import Dataset
from attrcheck.datasets import DatasetError, digits
from attrcheck.datasets.digits import digits as load_digits
from attrcheck.models import model
from attrcheck.training import loop as _train
from attrcheck.training.loop import RECIPES, Recipe, accuracy, recipe_for, shifted, train
from attrcheck.training.weights import CHECKPOINTS, load_weights, read_about

SHORT = Recipe(epochs=2, batch=16)


@pytest.fixture(autouse=True)
def few_images(monkeypatch):
    """A training split of 80 images is enough to see that training runs."""
    everything = digits.training
    monkeypatch.setattr(digits, "training", lambda: tuple(part[:80] for part in everything()))


@pytest.mark.parametrize("family", ["resnet", "vgg"])
def test_four_checkpoints_that_load(tmp_path, family):
    lines = []
    train("digits", family, SHORT, tmp_path, report=lines.append)
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
        train("digits", "vgg", SHORT, tmp_path / str(number), seed, report=lambda _: None)
        hashes.append(read_about("digits", "vgg", folder=tmp_path / str(number))["sha256"])
    assert hashes[0] == hashes[1] != hashes[2]
    assert torch.equal(torch.random.get_rng_state(), state)


def test_without_a_training_split_there_is_nothing_to_learn(tmp_path, monkeypatch):
    bare = Dataset(
        "bare", torch.zeros(1, 1, 32, 32), torch.zeros(1, dtype=torch.int64),
        2, (0.0,), (1.0,), ("bare/0",),
    )  # fmt: skip
    registry = {"bare": type("Spec", (), {"load": staticmethod(lambda: bare)})}
    monkeypatch.setattr(_train, "dataset", registry)
    with pytest.raises(DatasetError, match="dataset 'bare' has no training split"):
        train("bare", "vgg", folder=tmp_path)


def test_shifting_moves_images_within_bounds():
    images = torch.arange(36.0).view(1, 1, 6, 6).repeat(200, 1, 1, 1)
    moved = shifted(images, 2)
    assert moved.shape == images.shape
    centres = {tuple(divmod(int(image[0, 3, 3]), 6)) for image in moved}
    assert centres == {(row, column) for row in range(1, 6) for column in range(1, 6)}
    assert torch.equal(shifted(images, 0), images)


@pytest.mark.parametrize("name", ["digits", "shapes"])
@pytest.mark.parametrize("family", ["resnet", "vit", "bcos", "bagnet"])
def test_the_shipped_weights_follow_the_recipe(name, family):
    recipe = recipe_for(name, family)
    assert read_about(name, family)["recipe"] == asdict(recipe)
    shared = RECIPES.get(name, Recipe())
    assert replace(recipe, rate=shared.rate) == shared
    assert (recipe.rate < shared.rate) == (family == "vit")
