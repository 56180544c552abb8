"""Weights from files: what training scripts save is read, what does not fit is refused by name."""

import json

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from attrcheck.adapters import checkpoints
from attrcheck.adapters.checkpoints import WeightsError


def network(classes=None, names=()):
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1))
    return nn.Sequential(layers, nn.Flatten(), nn.Linear(4, 10 if classes is None else classes))


IMAGES = torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(1))


def same(one, other):
    return torch.equal(one.eval()(IMAGES), other.eval()(IMAGES))


@pytest.mark.parametrize("wrapper", [None, "state_dict", "model", "model_state_dict", "net"])
@pytest.mark.parametrize("prefix", ["", "module.", "model.", "_orig_mod.", "module.model."])
def test_wrappers_and_prefixes_are_taken_off(tmp_path, wrapper, prefix):
    trained = network()
    state = {prefix + name: weight for name, weight in trained.state_dict().items()}
    content = state if wrapper is None else {wrapper: state, "epoch": 3, "optimizer": {"lr": 0.1}}
    torch.save(content, tmp_path / "mine.pth")
    loaded, classes = checkpoints.load(tmp_path / "mine.pth", network)
    assert same(loaded, trained)
    assert classes is None


@pytest.mark.parametrize("file", ["mine.safetensors", "mine.pt", "mine.bin"])
def test_the_file_says_how_many_outputs_there_are(tmp_path, file):
    trained = network(7)
    save = save_file if file.endswith("safetensors") else torch.save
    save(trained.state_dict(), tmp_path / file)
    loaded, classes = checkpoints.load(tmp_path / file, network)
    assert same(loaded, trained)
    assert classes == 7


def test_counts_of_batches_may_be_missing(tmp_path):
    trained = network()
    state = {n: w for n, w in trained.state_dict().items() if not n.endswith("tracked")}
    torch.save(state, tmp_path / "old.pth")
    assert same(checkpoints.load(tmp_path / "old.pth", network)[0], trained)


def refused(path):
    with pytest.raises(WeightsError) as caught:
        checkpoints.load(path, network)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def test_weights_that_do_not_fit_are_named(tmp_path):
    path, state = tmp_path / "other.pth", network().state_dict()
    state["head.weight"] = state.pop("2.weight")
    state["0.0.weight"] = torch.zeros(4, 1, 3, 3)
    torch.save(state, path)
    message = refused(path)
    assert "1 missing: 2.weight" in message
    assert "1 unexpected: head.weight" in message
    assert "1 of other shapes: 0.0.weight [4, 1, 3, 3] for [4, 3, 3, 3]" in message


def test_of_many_names_the_first_few_are_shown(tmp_path):
    path = tmp_path / "other.pth"
    torch.save({f"w{index}": torch.zeros(1) for index in range(9)}, path)
    assert "9 unexpected: w0, w1, w2, w3, ...;" in refused(path)


class Anything:
    pass


def test_a_pickle_that_holds_more_than_tensors_is_not_run(tmp_path):
    path = tmp_path / "unsafe.pth"
    torch.save({"state_dict": network().state_dict(), "args": Anything()}, path)
    message = refused(path)
    assert "holds more than tensors" in message
    assert "state_dict()" in message


@pytest.mark.parametrize("file", ["broken.pth", "broken.safetensors"])
def test_what_is_not_a_checkpoint_is_named(tmp_path, file):
    path = tmp_path / file
    path.write_bytes(b"\x07\x00not a checkpoint at all")
    refused(path)


def test_a_missing_file_and_one_without_weights(tmp_path):
    assert "there is no checkpoint" in refused(tmp_path / "none.pth")
    path = tmp_path / "empty.pth"
    torch.save({"epoch": 3, "loss": 0.5}, path)
    assert "a dict of epoch, loss" in refused(path)


def test_a_safetensors_file_may_name_its_classes(tmp_path):
    path = tmp_path / "named.safetensors"
    save_file(network().state_dict(), path, {"class_names": json.dumps(["apple pie", "waffles"])})
    assert checkpoints.class_names(path) == ("apple pie", "waffles")
    save_file(network().state_dict(), path)
    assert checkpoints.class_names(path) == ()


@pytest.mark.parametrize(
    ("rest", "parts", "path"),
    [
        ("resnet18", ("resnet18", ""), False),
        ("resnet18@IMAGENET1K_V1", ("resnet18", "IMAGENET1K_V1"), False),
        ("resnet18@random", ("resnet18", "random"), False),
        ("resnet18@food101.safetensors", ("resnet18", "food101.safetensors"), True),
        ("a.b@/data/me@home/x.pth", ("a.b", "/data/me@home/x.pth"), True),
    ],
)
def test_what_stands_behind_the_at(rest, parts, path):
    assert checkpoints.split(rest) == parts
    assert checkpoints.is_path(parts[1]) is path
