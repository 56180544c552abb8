"""Training by epochs: the paper's recipe, the same weights after an interruption, on demand."""

import json
from dataclasses import replace

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from torch import nn

from attrcheck.contracts import Preprocessing
from attrcheck.datasets import DatasetError
from attrcheck.datasets.folders import folder
from attrcheck.datasets.pixels import view
from attrcheck.training.epochs import EpochRecipe, train_by_epochs, varied
from attrcheck.training.weights import WeightsError
from tests.papers.data_folder import CLASSES, pictures

FRAME = Preprocessing((12, 12), (0.5,) * 3, (0.25,) * 3, resize=12)
RECIPE = EpochRecipe(epochs=4, batch=5)


@pytest.fixture
def data(tmp_path):
    """Pictures whose class is their colour, read from files."""
    pictures(tmp_path / "food/train", count=8, seed=1)
    pictures(tmp_path / "food/val")
    return view(folder(tmp_path / "food", name="food"), FRAME)


def network():
    """Small, with a dropout and a batch norm: both must go on as if nothing had happened."""
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Dropout(0.3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )


class KilledError(Exception):
    """The process died."""


def killed_at(epoch, batch):
    """A progress that dies there."""

    def progress(text):
        if text.startswith(f"epoch {epoch} of 4, batch {batch} "):
            raise KilledError

    return progress


def test_the_recipe_is_the_papers():
    assert EpochRecipe() == EpochRecipe(epochs=200, batch=64, rate=1e-4, decay=5e-4)


@pytest.mark.parametrize("places", [[(1, 2)], [(3, 4)], [(2, 1), (4, 5)]])
def test_an_interrupted_training_ends_with_the_same_weights(data, tmp_path, places):
    whole, parts = tmp_path / "whole/net.safetensors", tmp_path / "parts/net.safetensors"
    score = train_by_epochs(network(), data, whole, RECIPE)
    for place in places:
        with pytest.raises(KilledError):
            train_by_epochs(network(), data, parts, RECIPE, progress=killed_at(*place))
        assert not parts.exists()
    assert train_by_epochs(network(), data, parts, RECIPE) == score
    expected, resumed = load_file(whole), load_file(parts)
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
    assert sorted(path.name for path in parts.parent.iterdir()) == ["net.json", "net.safetensors"]


def test_it_goes_on_where_it_stopped(data, tmp_path):
    path, texts = tmp_path / "net.safetensors", []
    with pytest.raises(KilledError):
        train_by_epochs(network(), data, path, RECIPE, progress=killed_at(3, 1))
    train_by_epochs(network(), data, path, RECIPE, progress=texts.append)
    assert texts[0].startswith("epoch 3 of 4, batch 1 of 5, 0:0")
    assert texts[-1] == "epoch 4 of 4, batch 5 of 5, 0:00 left"


def test_it_learns_and_says_what_is_known_of_the_weights(data, tmp_path):
    path, recipe = tmp_path / "net.safetensors", EpochRecipe(epochs=30, batch=8, rate=3e-2)
    score = train_by_epochs(network(), data, path, recipe, 1, preprocessing=FRAME, initial="none")
    assert score > 0.9
    about = json.loads(path.with_suffix(".json").read_text())
    assert about["accuracy"] == round(score, 6)
    assert about["classes"] == [*CLASSES]
    assert about["preprocessing"]["size"] == [12, 12]
    assert (about["dataset"], about["model"], about["initial"]) == ("food", "net", "none")
    with safe_open(path, "pt") as file:
        assert json.loads(file.metadata()["class_names"]) == [*CLASSES]


def test_the_rate_falls_by_half_a_cosine_and_the_optimiser_is_adam(data, tmp_path, monkeypatch):
    rates = []
    step = torch.optim.Adam.step

    def noted(self, *given):
        rates.append(self.param_groups[0]["lr"])
        assert self.param_groups[0]["weight_decay"] == 5e-4
        return step(self, *given)

    monkeypatch.setattr(torch.optim.Adam, "step", noted)
    train_by_epochs(network(), data, tmp_path / "net.safetensors", RECIPE)
    turns = torch.arange(20, dtype=torch.float64) / 20 * torch.pi
    assert rates == pytest.approx((1e-4 * (1 + turns.cos()) / 2).tolist())


def test_what_was_begun_with_other_settings_is_not_gone_on_with(data, tmp_path):
    path = tmp_path / "net.safetensors"
    with pytest.raises(KilledError):
        train_by_epochs(network(), data, path, RECIPE, progress=killed_at(2, 1))
    with pytest.raises(WeightsError, match=r"net\.training is of a training with other settings"):
        train_by_epochs(network(), data, path, replace(RECIPE, batch=6))
    (tmp_path / "net.training").write_bytes(b"half")
    with pytest.raises(WeightsError, match=r"cannot go on from .*net\.training"):
        train_by_epochs(network(), data, path, RECIPE)


def test_a_dataset_without_a_training_split_says_so(data, tmp_path):
    with pytest.raises(DatasetError, match=r"'food' has no training split .* folder `train`"):
        train_by_epochs(network(), replace(data, training=None), tmp_path / "net", RECIPE)


def test_images_are_moved_and_half_of_them_mirrored():
    torch.manual_seed(0)
    image = torch.arange(28.0).expand(400, 1, 28, 28)
    changed = varied(image)
    rising = changed[:, 0, 14, 20] > changed[:, 0, 14, 10]
    assert 150 < rising.sum() < 250
    moved = changed[rising][:, 0, 14, 14] - 14
    assert {*moved.tolist()} == {-1.0, 0.0, 1.0}
