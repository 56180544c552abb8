"""What people return from `@attrcheck.dataset`: converted, or refused in one sentence."""

import numpy as np
import pytest
import torch
from PIL import Image

import attrcheck
from attrcheck.adapters.vision import torchvision
from attrcheck.contracts import Dataset, Pictures
from attrcheck.datasets import DatasetError
from attrcheck.datasets.receiving import received
from tests.datasets.drawing import class_folders, noise

BYTES = torch.arange(2 * 3 * 4 * 5, dtype=torch.uint8).reshape(2, 3, 4, 5) * 2
IMAGES = BYTES / 255


def dataset(images=IMAGES, **changes):
    settings = {
        "name": "mine",
        "images": images,
        "labels": torch.tensor([0, 1]),
        "classes": 2,
        "mean": (0.5, 0.5, 0.5),
        "std": (0.25, 0.25, 0.25),
        "ids": ("a", "b"),
    }
    return Dataset(**(settings | changes))


def grey(images, **changes):
    return dataset(images, mean=(0.5,), std=(0.25,), **changes)


def test_what_is_right_stays_to_the_bit():
    data = dataset(masks=torch.ones(2, 4, 5, dtype=torch.bool))
    taken = received(data, "mine")
    assert taken.images.data_ptr() == data.images.data_ptr()
    assert taken.labels.data_ptr() == data.labels.data_ptr()
    assert taken.masks.data_ptr() == data.masks.data_ptr()
    assert (taken.mean, taken.std, taken.ids) == (data.mean, data.std, data.ids)


def test_a_dataset_goes_by_its_registered_name():
    assert received(dataset(), "registered").name == "registered"


def test_a_little_beyond_0_and_1_is_left_as_it_is():
    images = IMAGES.clone()
    images[0, 0, 0, 0], images[1, 0, 0, 0] = -0.005, 1.005
    assert torch.equal(received(dataset(images), "mine").images, images)


@pytest.mark.parametrize(
    "images",
    [
        BYTES,
        BYTES.to(torch.int64),
        BYTES.float(),
        BYTES.double(),
        BYTES.numpy(),
        BYTES.numpy().astype(np.uint16),
        BYTES.permute(0, 2, 3, 1),
        BYTES.permute(0, 2, 3, 1).numpy(),
        IMAGES.double(),
        IMAGES.permute(0, 2, 3, 1),
        list(IMAGES),
        [image.numpy() for image in BYTES],
        [Image.fromarray(image.permute(1, 2, 0).numpy()) for image in BYTES],
    ],
)
def test_other_forms_of_images_are_converted(images):
    taken = received(dataset(images), "mine").images
    assert taken.dtype is torch.float32
    assert taken.shape == (2, 3, 4, 5)
    assert torch.allclose(taken, IMAGES, atol=1e-7)


def test_grey_images_may_have_no_channel():
    assert torch.equal(received(grey(IMAGES[:, 0]), "mine").images, IMAGES[:, :1])
    pictures = [Image.fromarray(image[0].numpy()) for image in BYTES]
    assert torch.equal(received(grey(pictures), "mine").images, IMAGES[:, :1])


@pytest.mark.parametrize(
    ("images", "words"),
    [
        ((IMAGES - 0.5) / 0.25, r"from -2 to 1\.\d+, as if they were normalised .*images \* std"),
        (IMAGES * 1.6, r"values from 0 to 1\.\d+, not from 0 to 1; divide them"),
        (IMAGES * 3000, r"values from 0 to 2\.8e\+03, not from 0 to 1"),
        (BYTES.clamp(max=1), "uint8 with values from 0 to 1, so it cannot be told what is white"),
        (BYTES.int() * 100, r"int32 with values from 0 to 23800"),
        (BYTES.int() - 300, r"int32 with values from -300"),
        (IMAGES * float("nan"), "not finite"),
        (IMAGES[:, :2], r"must be \[N, C, H, W\] with one mean"),
        (IMAGES[:, 0], r"must be \[N, C, H, W\]"),
        (
            [noise(size=(4, 4)), noise(size=(5, 4))],
            "several sizes; resize .* return .picture, label. pairs",
        ),
        ("pictures", "a str is neither a tensor nor an array"),
        (None, "a NoneType is neither a tensor nor an array"),
    ],
)
def test_images_that_could_mean_two_things_are_refused(images, words):
    with pytest.raises(DatasetError, match=f"^dataset 'mine': .*{words}"):
        received(dataset(images), "mine")


@pytest.mark.parametrize(
    "labels", [[0, 1], np.array([0, 1], dtype=np.uint8), torch.tensor([[0.0], [1.0]]), (0, 1)]
)
def test_other_forms_of_labels_are_converted(labels):
    taken = received(dataset(labels=labels), "mine").labels
    assert taken.dtype is torch.int64
    assert taken.tolist() == [0, 1]


@pytest.mark.parametrize("labels", [torch.eye(2), torch.tensor([0.5, 1.0])])
def test_labels_that_are_not_whole_numbers_are_refused(labels):
    with pytest.raises(DatasetError, match=r"labels must be one whole number per image.*argmax"):
        received(dataset(labels=labels), "mine")


@pytest.mark.parametrize(
    "masks",
    [
        torch.eye(4, 5).expand(2, 4, 5) * 255,
        torch.eye(4, 5).expand(2, 1, 4, 5),
        np.eye(4, 5, dtype=np.uint8)[None].repeat(2, 0),
        [Image.fromarray(np.eye(4, 5, dtype=np.uint8))] * 2,
    ],
)
def test_masks_are_true_where_they_are_not_zero(masks):
    taken = received(dataset(masks=masks), "mine").masks
    assert torch.equal(taken, torch.eye(4, 5).expand(2, 4, 5).bool())


def test_names_numbers_and_ids_may_be_lists_and_arrays():
    data = dataset(classes=["cat", "dog"], mean=[0.1, 0.2, 0.3], std=np.full(3, 0.5), ids=[7, 8])
    taken = received(data, "mine")
    assert (taken.classes, taken.class_names) == (2, ("cat", "dog"))
    assert (taken.mean, taken.std, taken.ids) == ((0.1, 0.2, 0.3), (0.5,) * 3, ("7", "8"))


@pytest.mark.parametrize(
    "statistics",
    [{"mean": (123.7, 116.3, 103.5)}, {"std": (58.4, 57.1, 57.4)}, {"std": (0.0, 0.5, 0.5)}],
)
def test_statistics_of_another_scale_are_refused(statistics):
    with pytest.raises(DatasetError, match="must be those of values from 0 to 1"):
        received(dataset(**statistics), "mine")


@pytest.mark.parametrize("training", [(BYTES, [1, 0]), lambda: (BYTES.numpy(), np.array([1, 0]))])
def test_what_models_learn_from_is_converted_too(training):
    images, labels = received(dataset(training=training), "mine").training()
    assert torch.equal(images, IMAGES)
    assert labels.tolist() == [1, 0]
    with pytest.raises(DatasetError, match=r"dataset 'mine', to learn from: .*normalised"):
        received(dataset(training=lambda: (IMAGES - 0.5, [0, 1])), "mine").training()


def test_datasets_of_torchvision_and_pairs_become_pictures(tmp_path):
    source = torchvision.datasets.ImageFolder(str(class_folders(tmp_path)))
    taken = received(source, "pets")
    assert isinstance(taken, Pictures)
    assert (taken.name, taken.class_names, len(taken)) == ("pets", ("cat", "dog"), 9)
    pairs = [(noise(0, (5, 4)), 0), (noise(1, (9, 9)), 1)]
    taken = received(pairs, "pairs")
    assert {taken.read(place).size for place in (0, 1)} == {(5, 4), (9, 9)}
    taken = received(attrcheck.folder(tmp_path), "registered")
    assert (taken.name, len(taken)) == ("registered", 9)


def test_a_transform_to_tensors_is_refused_at_once(tmp_path):
    source = torchvision.datasets.ImageFolder(
        str(class_folders(tmp_path)), transform=torchvision.transforms.ToTensor()
    )
    with pytest.raises(DatasetError, match="is a Tensor, not a picture: give the dataset no"):
        received(source, "pets")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (IMAGES, "is images without labels; return attrcheck.Dataset"),
        (IMAGES.numpy(), "is images without labels"),
        ((IMAGES, torch.tensor([0, 1])), "is a tuple; return attrcheck.Dataset"),
        ([noise(0), noise(1)], "is pictures without labels; return .picture, label. pairs"),
        (None, "is None: does its function lack a `return`. return attrcheck.Dataset"),
        ("/data/val", r"is a str; return .*attrcheck\.folder\(path\)"),
        ({"images": IMAGES}, "is a dict; return"),
        ([], "there are no pictures"),
        (torch.utils.data.DataLoader([(noise(0), 0)]), "is a loader; return its `dataset`"),
    ],
)
def test_anything_else_gets_one_sentence(value, words):
    with pytest.raises(DatasetError, match=f"^dataset 'mine'.*{words}"):
        received(value, "mine")


def test_pictures_whose_parts_do_not_fit_are_refused():
    def pictures(labels, ids):
        return Pictures("x", noise, str, labels, ids, ("cat", "dog"))

    with pytest.raises(DatasetError, match="2 labels but 1 ids"):
        received(pictures((0, 1), ("a",)), "mine")
    with pytest.raises(DatasetError, match="label 2 of image 'b' is not one of 2 classes"):
        received(pictures((0, 2), ("a", "b")), "mine")
    with pytest.raises(DatasetError, match="there are no pictures"):
        received(pictures((), ()), "mine")
