"""Pictures as a network wants them: in its frame, made on demand, told apart by their bytes."""

import hashlib

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from attrcheck.adapters.vision import torchvision
from attrcheck.contracts import Pictures, Preprocessing
from attrcheck.datasets.pixels import in_memory, mask_of, normalised, pictures_of, pixels_of, view
from tests.worlds import tiny_dataset

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FRAME = Preprocessing((8, 8), MEAN, STD, resize=10)


def picture(width, height, seed=0):
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


def collection(count=5, **changes):
    """Pictures of growing width, and what was read of them."""
    asked = []

    def read(at):
        asked.append(at)
        return picture(10 + at, 12, seed=at)

    def tell(indices):
        return hashlib.sha256(repr(list(indices)).encode()).hexdigest()

    names = tuple(f"p{at}" for at in range(count))
    parts = {"labels": tuple(at % 2 for at in range(count)), "ids": names}
    pictures = Pictures("some", read, tell, class_names=("a", "b"), **{**parts, **changes})
    return pictures, asked


@given(
    width=st.integers(1, 60),
    height=st.integers(1, 60),
    resize=st.one_of(st.integers(1, 40), st.tuples(st.integers(1, 40), st.integers(1, 40))),
    size=st.tuples(st.integers(1, 40), st.integers(1, 40)),
    interpolation=st.sampled_from(["nearest", "bilinear", "bicubic", "lanczos"]),
)
@settings(max_examples=150, deadline=None)
def test_pixels_are_those_of_torchvision(width, height, resize, size, interpolation):
    transforms = torchvision.transforms
    short = [resize] if isinstance(resize, int) else list(resize)
    theirs = transforms.Compose(
        [
            transforms.Resize(short, transforms.InterpolationMode[interpolation.upper()]),
            transforms.CenterCrop(size),
            transforms.ToTensor(),
        ]
    )
    given = picture(width, height)
    try:
        expected = theirs(given)
    except ValueError:  # the longer side would be less than a pixel: torchvision gives up
        return
    frame = Preprocessing(size, MEAN, STD, resize, interpolation)
    assert torch.equal(pixels_of(given, frame), expected)


def test_a_side_never_shrinks_to_nothing():
    frame = Preprocessing((4, 4), MEAN, STD, resize=2)
    assert pixels_of(picture(1, 500), frame).shape == (3, 4, 4)


@pytest.mark.parametrize("size", [(1, 20_000), (20_000, 2), (20_001, 3)])
def test_a_very_long_picture_costs_no_more_than_its_middle(size, monkeypatch):
    frame = Preprocessing((64, 64), MEAN, STD, resize=70)
    given = picture(*size)
    sizes, resize = [], Image.Image.resize
    monkeypatch.setattr(
        Image.Image, "resize", lambda one, to, how: sizes.append(to) or resize(one, to, how)
    )
    seen = pixels_of(given, frame)
    assert max(max(to) for to in sizes) < 70 * 300
    monkeypatch.setattr("attrcheck.datasets.pixels.MOST_PIXELS", 2**40)
    # Where the sides do not divide, the scale differs in the fourth digit.
    assert torch.allclose(seen, pixels_of(given, frame), atol=2 / 255)


def test_one_channel_makes_pictures_grey():
    given = picture(8, 8)
    grey = pixels_of(given, Preprocessing((8, 8), (0.5,), (0.5,)))
    assert grey.shape == (1, 8, 8)
    assert torch.equal(grey[0], torch.from_numpy(np.asarray(given.convert("L")) / np.float32(255)))


def test_masks_go_through_the_same_frame():
    white = np.zeros((20, 30), np.uint8)
    white[5:15, 10:20] = 255
    seen = mask_of(Image.fromarray(white), Preprocessing((10, 10), MEAN, STD, resize=10))
    expected = torch.zeros(10, 10, dtype=torch.bool)
    expected[2:7, 3:8] = True  # half the size; the frame begins at 5 of 30 columns
    assert seen.dtype == torch.bool
    assert torch.equal(seen, expected)


def test_nothing_is_read_before_it_is_asked_for():
    pictures, asked = collection()
    seen = view(pictures, FRAME)
    assert (len(seen), seen.images.shape, seen.channels) == (5, (5, 3, 8, 8), 3)
    late = seen.part(slice(2, 5))
    assert asked == []
    assert late.images[1:].shape == (2, 3, 8, 8)
    assert sorted(asked) == [3, 4]
    assert late.ids == ("p2", "p3", "p4")
    assert late.labels.tolist() == [0, 1, 0]


def test_any_way_to_take_some_gives_the_same():
    seen = view(collection()[0], FRAME)
    whole = seen.images[:]
    assert torch.equal(seen.images[torch.tensor([4, 0])], whole[[4, 0]])
    assert torch.equal(seen.images.part(torch.tensor([4, 0]))[:], whole[[4, 0]])
    assert torch.equal(seen.images.part(slice(1, 4))[1:], whole[2:4])
    assert seen.images[0:0].shape == (0, 3, 8, 8)


def test_normalised_images_are_made_on_demand_too():
    pictures, asked = collection()
    seen = view(pictures, FRAME)
    lazy = normalised(seen, seen.images, torch.device("cpu"))
    assert asked == []
    assert torch.equal(lazy[:2], seen.normalise(seen.images[:2]))
    eager = in_memory(seen)
    assert torch.equal(normalised(eager, eager.images, torch.device("cpu"))[:2], lazy[:2])


def test_what_tells_pixels_apart():
    seen = view(collection()[0], FRAME)
    other = view(collection()[0], Preprocessing((8, 8), MEAN, STD, resize=12))
    brighter = view(collection()[0], Preprocessing((8, 8), (0.1,) * 3, STD, resize=10))
    told = {seen.images.fingerprint(), other.images.fingerprint()}
    told.add(seen.images.part(slice(2)).fingerprint())
    assert len(told) == 3
    # Mean and std are no part of the pixels; the key of a dataset has them beside.
    assert brighter.images.fingerprint() == seen.images.fingerprint()


def test_the_training_split_is_read_on_demand():
    learnt, asked = collection()
    pictures, _ = collection(training=lambda: learnt)
    images, labels = view(pictures, FRAME).training()
    assert asked == []
    assert images[:1].shape == (1, 3, 8, 8)
    assert labels.tolist() == [0, 1, 0, 1, 0]


def test_images_in_memory_become_pictures():
    count = len(tiny_dataset())
    data = tiny_dataset(images=torch.rand(count, 3, 9, 7))
    pictures = pictures_of(data)
    seen = view(pictures, Preprocessing((9, 7), MEAN, STD))
    assert torch.allclose(seen.images[:], data.images, atol=1 / 510 + 1e-6)
    assert (seen.ids, seen.labels.tolist()) == (data.ids, data.labels.tolist())
    assert pictures.fingerprint([0]) != pictures.fingerprint([1])


def test_an_error_of_one_picture_is_raised():
    def read(at):
        raise OSError(f"picture {at} is broken")

    seen = view(Pictures("some", read, repr, (0,), ("p",), ("a",)), FRAME)
    with pytest.raises(OSError, match="picture 0 is broken"):
        seen.images[:]
