"""What gives pictures by index, as torchvision's datasets do."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Subset

from attrcheck.adapters.vision import torchvision
from attrcheck.datasets import DatasetError
from attrcheck.datasets.items import files_of, labels_of, names_of, pictures_from
from tests.datasets.drawing import class_folders, draw, noise

PAIRS = [(noise(seed), seed % 3) for seed in range(9)]


class Counting(torch.utils.data.Dataset):
    """Counts the pictures that were read."""

    def __init__(self, labels, **more):
        self.reads = 0
        self.__dict__ |= {"targets": labels, **more}

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, index):
        self.reads += 1
        return noise(index), self.targets[index]


def test_pairs_become_pictures_in_a_fair_order():
    pictures = pictures_from(PAIRS, "pairs")
    assert pictures.class_names == ("0", "1", "2")
    assert sorted(pictures.ids) == [str(index) for index in range(9)]
    assert sorted(pictures.labels[:3]) == [0, 1, 2]
    for place, name in enumerate(pictures.ids):
        picture, label = PAIRS[int(name)]
        assert pictures.labels[place] == label
        assert np.array_equal(np.asarray(pictures.read(place)), np.asarray(picture))
    assert pictures.fingerprint([0, 1]) != pictures.fingerprint([0, 2])
    assert pictures.fingerprint([0, 1]) == pictures_from(PAIRS, "again").fingerprint([0, 1])


@pytest.mark.parametrize("labels", [[0, 1, 1], np.array([0, 1, 1]), torch.tensor([0, 1, 1])])
def test_labels_that_are_kept_in_a_list_are_taken_without_reading_a_picture(labels):
    source = Counting(labels, classes=["a", "b"])
    pictures = pictures_from(source, "counting")
    assert pictures.class_names == ("a", "b")
    assert source.reads == 0
    pictures.read(0)
    assert source.reads == 1


def test_a_change_of_the_labels_counts():
    assert labels_of(Counting([0, 1, 1], target_transform=lambda label: label + 5), "x") == [
        5,
        6,
        6,
    ]


def test_a_label_out_of_range_or_of_another_kind_is_named():
    with pytest.raises(DatasetError, match="dataset 'x': label 2 of image '1' is not one of 2"):
        pictures_from(Counting([0, 2], classes=["a", "b"]), "x")
    with pytest.raises(DatasetError, match="does not have one label, a whole number"):
        pictures_from(Counting([(0, 1), (1, 1)]), "x")
    with pytest.raises(DatasetError, match="does not have one label"):
        pictures_from([noise(0), noise(1)], "x")


def test_class_names_come_in_the_order_of_the_labels():
    assert names_of(Counting([0], class_to_idx={"b": 0, "a": 1}, classes=["a", "b"])) == ("b", "a")
    synsets = {"wnids": ["n1", "n2"], "classes": [("tench", "fish"), ("shark",)]}
    assert names_of(Counting([0], **synsets, class_to_idx={"tench": 0, "fish": 0})) == ("n1", "n2")
    del synsets["wnids"]
    assert names_of(Counting([0], **synsets)) == ("tench, fish", "shark")
    assert names_of(Counting([0], categories=["a"])) == ("a",)


def test_an_image_folder_of_torchvision(tmp_path):
    source = torchvision.datasets.ImageFolder(str(class_folders(tmp_path)))
    pictures = pictures_from(source, "pets")
    assert pictures.class_names == ("cat", "dog")
    assert sorted(pictures.ids)[0] == "cat/00.png"
    place = pictures.ids.index("dog/01.png")
    assert pictures.labels[place] == 1
    wanted = np.asarray(Image.open(tmp_path / "dog/01.png"))
    assert np.array_equal(np.asarray(pictures.read(place)), wanted)
    before = pictures.fingerprint([place])
    draw(tmp_path / "dog/01.png", seed=77)
    assert pictures.fingerprint([place]) != before


def test_a_part_of_a_dataset_has_its_labels_files_and_names(tmp_path):
    whole = torchvision.datasets.ImageFolder(str(class_folders(tmp_path)))
    part = Subset(whole, [8, 0, 1])
    assert labels_of(part, "x") == [1, 0, 0]
    assert names_of(part) == ("cat", "dog")
    assert [file[-10:] for file in files_of(part)] == ["dog/02.png", "cat/00.png", "cat/01.png"]
    assert set(pictures_from(part, "x").ids) == {"dog/02.png", "cat/00.png", "cat/01.png"}


def test_a_transform_that_gives_tensors_is_refused_and_one_that_gives_pictures_counts(tmp_path):
    class_folders(tmp_path)
    source = torchvision.datasets.ImageFolder(
        str(tmp_path), transform=torchvision.transforms.ToTensor()
    )
    with pytest.raises(
        DatasetError, match=r"image '.*' of dataset 'x' is a Tensor, .*no `transform`"
    ):
        pictures_from(source, "x").read(0)
    sizes = [
        torchvision.datasets.ImageFolder(
            str(tmp_path), transform=torchvision.transforms.CenterCrop(size)
        )
        for size in (2, 4)
    ]
    small, large = (pictures_from(source, "x") for source in sizes)
    assert small.fingerprint([0]) != large.fingerprint([0])


def test_a_broken_file_is_named(tmp_path):
    class_folders(tmp_path)
    (tmp_path / "dog/01.png").write_bytes(b"<html>")
    pictures = pictures_from(torchvision.datasets.ImageFolder(str(tmp_path)), "x")
    with pytest.raises(DatasetError, match=r"image 'dog/01\.png' of dataset 'x' cannot be read"):
        pictures.read(pictures.ids.index("dog/01.png"))
