from hashlib import sha256

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from attrcheck.contracts import Dataset
from attrcheck.datasets import DatasetError
from attrcheck.datasets import digits as module
from attrcheck.datasets.digits import digits, split, training
from attrcheck.engine.keys import of_dataset


@pytest.fixture(scope="module")
def data() -> Dataset:
    return digits()


def test_shapes_and_range(data):
    assert data.images.shape == (len(data), 1, 32, 32)
    assert data.images.dtype == torch.float32
    assert data.images.min() == 0
    assert data.images.max() == 1
    assert data.masks is None


def test_the_bytes_are_the_same_everywhere(data):
    parts = (data.images, data.labels)
    content = b"".join(part.numpy().tobytes() for part in parts)
    assert sha256(content).hexdigest()[:16] == "a856c7428f99e9a3"


def test_a_fifth_is_held_out_and_the_rest_is_for_training(data):
    images, labels = training()
    assert len(data) + len(images) == 1797
    assert len(data) == pytest.approx(1797 / 5, abs=5)
    assert len(images) == len(labels)
    assert not {image.tobytes() for image in images.numpy()} & {
        image.tobytes() for image in data.images.numpy()
    }


def test_normalisation_is_that_of_the_training_split(data):
    images, _ = training()
    assert data.normalise(images).mean() == pytest.approx(0, abs=1e-3)
    assert data.normalise(images).std() == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("n", [50, 100, 358])
def test_every_prefix_is_a_fair_sample(data, n):
    counts = torch.bincount(data.head(n).labels, minlength=10)
    assert counts.max() - counts.min() <= 2


def test_ids_name_the_scan(data):
    index = int(data.ids[0].removeprefix("digits/"))
    assert load_digits().target[index] == data.labels[0]
    assert len(set(data.ids)) == len(data)


def test_split_deals_out_each_class():
    labels = np.repeat(np.arange(3), 50)
    held_out, rest = split(labels)
    assert np.bincount(labels[held_out]).tolist() == [10, 10, 10]
    assert sorted([*held_out, *rest]) == list(range(150))


def test_loading_twice_gives_the_same(data):
    assert of_dataset(digits()) == of_dataset(data)


@pytest.mark.parametrize("load", [digits, training])
def test_scans_that_are_not_those_that_shipped_are_an_error(monkeypatch, tmp_path, load):
    path = tmp_path / "digits.npz"
    with np.load(module.SCANS) as file:
        images, labels = file["images"], file["labels"]
    monkeypatch.setattr(module, "SCANS", path)
    for content in (labels, np.roll(labels, 1)):  # packed anew, and with labels exchanged
        np.savez(path, images=images, labels=content)
        with pytest.raises(DatasetError, match=r"digits\.npz is damaged: .*; reinstall attrcheck"):
            load()
    path.unlink()
    with pytest.raises(DatasetError, match=r"cannot read .*digits\.npz \(No such file.*reinstall"):
        load()
