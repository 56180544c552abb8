"""torchvision's datasets by name, from small data in their own formats on disk."""

import hashlib
import inspect
import json
import pickle

import numpy as np
import pytest
import torch
from PIL import Image

import attrcheck
from attrcheck.adapters.torchvision_datasets import LAYOUTS, resolve
from attrcheck.adapters.vision import torchvision
from attrcheck.datasets import DatasetError
from attrcheck.registry import RegistryError
from tests.datasets.drawing import class_folders, draw

SYNSETS = ("n01440764", "n01443537", "n01484850")


def md5(path):
    return hashlib.md5(path.read_bytes()).hexdigest()


@pytest.fixture
def cifar100(tmp_path, monkeypatch):
    """Twelve pictures of CIFAR-100 to evaluate on, six to learn from, four classes."""
    kind, folder = torchvision.datasets.CIFAR100, tmp_path / "cifar-100-python"
    folder.mkdir()
    rng = np.random.default_rng(0)

    def write(name, content):
        (folder / name).write_bytes(pickle.dumps(content))
        return [name, md5(folder / name)]

    def part(count):
        data = rng.integers(0, 256, (count, 3 * 32 * 32), dtype=np.uint8)
        return {"data": data, "fine_labels": [index % 4 for index in range(count)]}

    names = ["apple", "bear", "cloud", "dolphin"]
    held_out, train = part(12), part(6)
    monkeypatch.setattr(kind, "test_list", [write("test", held_out)])
    monkeypatch.setattr(kind, "train_list", [write("train", train)])
    file, code = write("meta", {"fine_label_names": names})
    monkeypatch.setattr(kind, "meta", {"filename": file, "key": "fine_label_names", "md5": code})
    return tmp_path, held_out


def test_cifar(cifar100):
    root, data = cifar100
    spec = resolve(f"CIFAR100@{root}")
    assert (spec.name, spec.offers) == ("torchvision:CIFAR100", ("training",))
    pictures = spec.load()
    assert pictures.class_names == ("apple", "bear", "cloud", "dolphin")
    assert len(pictures) == 12
    assert sorted(pictures.labels[:4]) == [0, 1, 2, 3]
    for place, name in enumerate(pictures.ids):
        wanted = data["data"][int(name)].reshape(3, 32, 32).transpose(1, 2, 0)
        assert np.array_equal(np.asarray(pictures.read(place)), wanted)
        assert pictures.labels[place] == int(name) % 4
    assert len(pictures.training()) == 6
    assert pictures.fingerprint([0]) == spec.load().fingerprint([0])
    assert pictures.fingerprint([0]) != pictures.fingerprint([1])


def test_food101(tmp_path):
    folder = tmp_path / "food-101"
    for seed, name in enumerate(("apple_pie/1", "apple_pie/2", "waffles/3", "waffles/4")):
        draw(folder / "images" / f"{name}.jpg", seed)
    (folder / "meta").mkdir()
    parts = {"test": {"waffles": ["waffles/3"], "apple_pie": ["apple_pie/1"]}}
    parts["train"] = {"waffles": ["waffles/4"], "apple_pie": ["apple_pie/2"]}
    for name, part in parts.items():
        (folder / "meta" / f"{name}.json").write_text(json.dumps(part))
    pictures = resolve(f"Food101@{tmp_path}").load()
    assert pictures.class_names == ("apple_pie", "waffles")
    labels = dict(zip(pictures.ids, pictures.labels, strict=True))
    assert labels == {
        "food-101/images/apple_pie/1.jpg": 0,
        "food-101/images/waffles/3.jpg": 1,
    }
    assert set(pictures.training().ids) == {
        "food-101/images/apple_pie/2.jpg",
        "food-101/images/waffles/4.jpg",
    }
    wanted = np.asarray(Image.open(tmp_path / pictures.ids[0]).convert("RGB"))
    assert np.array_equal(np.asarray(pictures.read(0)), wanted)


@pytest.fixture
def imagenet(tmp_path):
    names = {synset: (f"name of {synset}", "fish") for synset in SYNSETS}
    torch.save((names, ["n01440764"] * 3), tmp_path / "meta.bin")
    class_folders(tmp_path / "val", dict.fromkeys(SYNSETS, 2), ".JPEG")
    return tmp_path


def test_imagenet_is_known_by_its_synsets(imagenet):
    spec = resolve(f"ImageNet@{imagenet}")
    assert spec.offers == ()  # there is no train folder
    pictures = spec.load()
    assert pictures.class_names == SYNSETS
    assert pictures.training is None
    assert sorted(pictures.ids)[0] == "val/n01440764/00.JPEG"
    assert pictures.class_names == attrcheck.folder(imagenet / "val").class_names
    class_folders(imagenet / "train", dict.fromkeys(SYNSETS, 3), ".JPEG")
    assert resolve(f"ImageNet@{imagenet}").offers == ("training",)
    assert len(resolve(f"ImageNet@{imagenet}").load().training()) == 9


def test_places365_has_its_classes_in_the_order_of_its_own_file(tmp_path, monkeypatch):
    kind = torchvision.datasets.Places365
    (tmp_path / "categories_places365.txt").write_text("/b/bar 0\n/a/alley 1\n")
    (tmp_path / "places365_val.txt").write_text("1.jpg 1\n2.jpg 0\n")
    files = ("categories_places365.txt", "places365_val.txt")
    codes = {name: (name, md5(tmp_path / name)) for name in files}
    monkeypatch.setattr(kind, "_CATEGORIES_META", codes[files[0]])
    monkeypatch.setattr(kind, "_FILE_LIST_META", {"val": codes[files[1]]})
    for seed in (1, 2):
        draw(tmp_path / "val_256" / f"{seed}.jpg", seed)
    pictures = resolve(f"Places365@{tmp_path}").load()
    assert pictures.class_names == ("/b/bar", "/a/alley")
    labels = dict(zip(pictures.ids, pictures.labels, strict=True))
    assert labels == {"val_256/1.jpg": 1, "val_256/2.jpg": 0}
    assert pictures.read(0).size == (8, 6)


def test_mnist_is_grey(tmp_path):
    folder = tmp_path / "MNIST/raw"
    folder.mkdir(parents=True)
    for part in ("t10k", "train"):
        pixels = np.arange(4 * 28 * 28, dtype=np.uint64).astype(np.uint8)
        head = np.array([0x803, 4, 28, 28], dtype=">i4").tobytes()
        (folder / f"{part}-images-idx3-ubyte").write_bytes(head + pixels.tobytes())
        head = np.array([0x801, 4], dtype=">i4").tobytes()
        (folder / f"{part}-labels-idx1-ubyte").write_bytes(head + bytes([3, 1, 4, 1]))
    pictures = resolve(f"MNIST@{tmp_path}").load()
    assert pictures.class_names[3] == "3 - three"
    assert sorted(pictures.labels) == [1, 1, 3, 4]
    assert pictures.read(0).mode == "L"


@pytest.mark.parametrize("name", LAYOUTS)
def test_missing_data_say_what_should_lie_where(name, tmp_path):
    if name == "PCAM":
        pytest.importorskip("h5py")
    spec = resolve(f"{name}@{tmp_path}")
    with pytest.raises(DatasetError) as caught:
        spec.load()
    (line,) = str(caught.value).splitlines()
    assert line.startswith(f"torchvision:{name} cannot be read from {tmp_path}: it wants ")
    assert LAYOUTS[name].wants in line
    assert not list(tmp_path.rglob("*.*"))  # nothing was downloaded


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_class_takes_what_it_is_asked_with(name):
    kind, layout = getattr(torchvision.datasets, name), LAYOUTS[name]
    takes = set()
    for owner in kind.__mro__[:-1]:
        takes |= set(inspect.signature(owner.__init__).parameters)
    assert set(layout.held_out) | set(layout.train or ()) <= takes


def test_a_root_is_needed_and_may_come_from_a_table(registries, cifar100):
    root, _ = cifar100
    with pytest.raises(DatasetError, match=r"say where it lies, as in torchvision:CIFAR100@/data"):
        attrcheck.dataset.get("torchvision:CIFAR100")
    attrcheck.dataset.bind("cifar", "torchvision:CIFAR100", {"root": str(root)})
    assert attrcheck.dataset.get("cifar").name == "cifar"
    assert len(attrcheck.dataset.get("cifar").load()) == 12
    attrcheck.dataset.bind("learnt", "torchvision:CIFAR100", {"root": str(root), "train": True})
    assert len(attrcheck.dataset.get("learnt").load()) == 6
    attrcheck.dataset.bind("odd", "torchvision:CIFAR100", {"root": str(root), "size": 3})
    with pytest.raises(DatasetError, match="unexpected keyword argument 'size'"):
        attrcheck.dataset.get("odd").load()


def test_a_root_that_is_not_there_is_told_before_anything_runs(tmp_path):
    with pytest.raises(
        DatasetError, match=r"there is no folder .*gone; it wants cifar-100-python/"
    ):
        resolve(f"CIFAR100@{tmp_path / 'gone'}")


def test_an_unknown_class_gets_close_matches():
    with pytest.raises(RegistryError, match=r"no dataset with one label .*'CIFAR1000'.*CIFAR100"):
        resolve("CIFAR1000@/data")


def test_names_on_the_command_line(registries, cifar100):
    root, _ = cifar100
    (name,) = attrcheck.dataset.select(f"torchvision:CIFAR100@{root}")
    assert name == "torchvision:CIFAR100"
    assert len(attrcheck.dataset.get(name).load()) == 12
    with pytest.raises(RegistryError, match="would both be called 'torchvision:CIFAR100'"):
        attrcheck.dataset.select(f"torchvision:CIFAR100@{root},torchvision:CIFAR100@/other")
