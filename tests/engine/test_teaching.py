"""`attrcheck train` for public architectures: where it begins, where the suites find the result."""

import json
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file

from attrcheck import papers
from attrcheck.adapters.vision import torchvision
from attrcheck.cli import main
from attrcheck.datasets import dataset
from attrcheck.engine.loading import Loader
from attrcheck.engine.teaching import initialised, name_of
from attrcheck.models import model
from attrcheck.papers.arranging import arrange
from tests.papers.data_folder import CLASSES, empty_caches, pictures


@pytest.fixture(autouse=True)
def project(registries, tmp_path, monkeypatch):
    """Food-101 in a data folder, in small, and empty caches."""
    empty_caches(monkeypatch, tmp_path)
    monkeypatch.chdir(tmp_path)
    pictures(tmp_path / "data/food101/train", count=2, seed=1)
    pictures(tmp_path / "data/food101/val", count=1)
    return tmp_path


RESNET = "torchvision:resnet18"
TRAIN = ("train", "--models", "torchvision:squeezenet1_1", "--epochs", "1", "--batch", "6")


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("torchvision:resnet18", "resnet18"),
        ("torchvision:resnet18@IMAGENET1K_V1", "resnet18"),
        ("timm:inception_v4.tf_in1k", "inception_v4"),
        ("mine", "mine"),
    ],
)
def test_weights_are_called_by_alias_or_architecture(model, name):
    assert name_of(model) == name


@pytest.mark.slow
def test_a_command_trains_what_the_suite_then_finds(project, capsys):
    assert main([*TRAIN[:1], "--datasets", "food101", *TRAIN[3:], "--models", RESNET]) == 0
    file = project / "data/weights/food101/resnet18.safetensors"
    output = capsys.readouterr()
    assert output.err == ""
    assert output.out.startswith("food101-resnet18: accuracy ")
    assert "random weights, as those of torchvision:resnet18 are not here" in output.out
    about = json.loads(file.with_suffix(".json").read_text())
    assert about["preprocessing"]["resize"] == 256
    assert about["recipe"] == {"epochs": 1, "batch": 6, "rate": 1e-4, "decay": 5e-4}
    with model.scratch(), dataset.scratch():
        there = arrange(papers.load("metarank"), project / "data")
        assert (there.datasets, there.models) == (("food101",), ("resnet18",))
        trained = Loader("cpu").trained("food101", "resnet18")
        images = trained.data.normalise(trained.data.images[:])
        with torch.no_grad():
            predicted = trained.forms.predictor(images).argmax(1)
        right = (predicted == trained.data.labels).float().mean()
        assert float(right) == pytest.approx(about["accuracy"], abs=1e-6)


def test_what_is_there_is_not_trained_again_unless_asked_for(project, capsys):
    place = ("--datasets", "food=folder:data/food101/val", "--data", "elsewhere")
    assert main([*TRAIN, *place]) == 0
    file = project / "elsewhere/weights/food/squeezenet1_1.safetensors"
    before = file.stat().st_mtime_ns
    assert main([*TRAIN, *place]) == 0
    assert "is there already; --fresh trains it anew" in capsys.readouterr().out
    assert file.stat().st_mtime_ns == before
    assert main([*TRAIN, *place, "--fresh"]) == 0
    assert file.stat().st_mtime_ns > before


def test_a_dataset_of_a_suite_that_is_not_there_is_one_clear_line(capsys):
    assert main([*TRAIN, "--datasets", "resisc45"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("attrcheck: there is no resisc45/val in data: download")


def test_training_begins_with_public_weights_where_they_are(project, tmp_path):
    raw = dataset.get("folder:data/food101/val").load()
    torch.manual_seed(1)
    public = torchvision.models.squeezenet1_1(weights=None).state_dict()
    folder = tmp_path / "torch/checkpoints"
    folder.mkdir(parents=True)
    torch.save(public, folder / "squeezenet1_1-b8a52dc0.pth")
    built, initial = initialised("torchvision:squeezenet1_1", raw)
    own = built.network.state_dict()
    assert initial == "the weights of torchvision:squeezenet1_1"
    assert own["classifier.1.weight"].shape[0] == len(CLASSES)
    same = [name for name in own if torch.equal(own[name], public[name])]
    assert {*own} - {*same} == {"classifier.1.weight", "classifier.1.bias"}


@pytest.mark.slow
def test_a_killed_command_goes_on_and_ends_with_the_same_weights(project):
    command = [
        *(sys.executable, "-c", "from attrcheck.cli import main; raise SystemExit(main())"),
        *(*TRAIN[:3], "--epochs", "4", "--batch", "2", "--datasets", "food101"),
    ]
    begun = project / "data/weights/food101/squeezenet1_1.training"
    process = subprocess.Popen(command)
    try:
        while not begun.exists() and process.poll() is None:
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    assert begun.exists(), "it ended before it could be killed"
    subprocess.run(command, check=True)
    file = begun.with_suffix(".safetensors")
    resumed = load_file(file)
    file.unlink()
    subprocess.run(command, check=True)
    expected = load_file(file)
    assert all(torch.equal(expected[name], resumed[name]) for name in expected)
