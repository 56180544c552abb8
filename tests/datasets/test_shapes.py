from hashlib import sha256

import numpy as np
import pytest
import torch

from attrcheck.contracts import Dataset
from attrcheck.datasets import shapes as module
from attrcheck.datasets.shapes import CLASSES, DISTRACTORS, HELD_OUT, TRAINING, generate, shapes


@pytest.fixture(scope="module")
def data() -> Dataset:
    return shapes()


def test_shapes_and_types(data):
    assert data.images.shape == (1000, 3, 32, 32)
    assert data.images.dtype == torch.float32
    assert data.labels.dtype == torch.int64
    assert data.masks.shape == (1000, 32, 32)
    assert data.masks.dtype == torch.bool
    assert data.images.min() >= 0
    assert data.images.max() <= 1


def test_the_bytes_are_the_same_everywhere(data):
    parts = (data.images, data.labels, data.masks)
    content = b"".join(part.numpy().tobytes() for part in parts)
    assert sha256(content).hexdigest()[:16] == "bb0a282c3447a109"


def test_pixels_are_whole_steps_of_a_byte(data):
    scaled = data.images * 255
    assert torch.allclose(scaled, scaled.round(), atol=1e-4)


def test_an_image_does_not_depend_on_how_many_are_drawn(data):
    images, labels, masks = generate(HELD_OUT, 77)
    assert torch.equal(images, data.images[:77])
    assert torch.equal(labels, data.labels[:77])
    assert torch.equal(masks, data.masks[:77])


def test_training_images_are_others(data):
    images, _, _ = generate(TRAINING, 1000)
    seen = {image.tobytes() for image in data.images.numpy()}
    assert len(seen) == 1000
    assert not seen & {image.tobytes() for image in images.numpy()}


def test_training_is_the_training_split(data, monkeypatch):
    monkeypatch.setattr(module, "TRAINING_IMAGES", 60)
    images, labels = data.training()
    expected, expected_labels, _ = generate(TRAINING, 60)
    assert torch.equal(images, expected)
    assert torch.equal(labels, expected_labels)


def test_normalisation_is_that_of_the_training_split(data):
    images = data.normalise(generate(TRAINING, 1000)[0])
    assert images.mean((0, 2, 3)).abs().max() < 0.05
    assert (images.std((0, 2, 3)) - 1).abs().max() < 0.05


def test_every_class_is_among_the_first_hundred_and_none_is_rare(data):
    assert set(data.labels[:100].tolist()) == set(range(data.classes))
    assert torch.bincount(data.labels).min() > 90


def test_every_mask_is_an_object_inside_the_image(data):
    area = data.masks.sum((1, 2))
    assert area.min() >= 20
    assert area.max() <= 200
    columns, rows = data.masks.any(1), data.masks.any(2)
    # Not more than an object's diameter either way.
    assert columns.sum(1).max() <= 18
    assert rows.sum(1).max() <= 18


def test_the_mask_is_where_the_deciding_object_is(monkeypatch):
    monkeypatch.setattr(module, "NOISE", 0.0)
    monkeypatch.setattr(module, "TEXTURE", 0.0)
    monkeypatch.setattr(module, "OBJECTS", 1)
    monkeypatch.setattr(module, "CONTRAST", (0.5, 0.5))
    images, _, masks = generate(HELD_OUT, 50)
    for image, mask in zip(images, masks, strict=True):
        ground = image.flatten(1).min(1).values
        ink = image.flatten(1).max(1).values
        half = ((ground + ink) / 2)[:, None, None]
        # Rounding to bytes can move a pixel that is half covered across the line.
        assert ((image > half).all(0) ^ mask).sum() <= 2


def test_nothing_hides_the_deciding_object(monkeypatch):
    monkeypatch.setattr(module, "NOISE", 0.0)
    monkeypatch.setattr(module, "TEXTURE", 0.0)
    images, _, masks = generate(HELD_OUT, 200)
    for image, mask in zip(images, masks, strict=True):
        # Inside the mask, away from the soft edge, there is one colour only.
        inner = image[:, _eroded(mask)]
        assert inner.numel()
        assert (inner.max(1).values - inner.min(1).values <= 1.5 / 255).all()


def _eroded(mask: torch.Tensor) -> torch.Tensor:
    """The pixels of a mask whose eight neighbours belong to it too."""
    padded = torch.nn.functional.pad(mask.float()[None, None], (1, 1, 1, 1))
    return torch.nn.functional.avg_pool2d(padded, 3, 1)[0, 0] > 0.999


@pytest.mark.parametrize("field", [*CLASSES, *DISTRACTORS], ids=lambda f: f.__name__.strip("_"))
def test_every_outline_fits_its_radius_and_has_an_inside(field):
    axis = np.linspace(-1.5, 1.5, 61, dtype=np.float32)
    x, y = np.meshgrid(axis, axis)
    inside = field(x, y) < 0
    assert inside.mean() > 0.05
    assert np.sqrt(x * x + y * y)[inside].max() <= 1.25


def test_no_two_outlines_are_alike():
    axis = np.linspace(-1.2, 1.2, 61, dtype=np.float32)
    x, y = np.meshgrid(axis, axis)
    outlines = [field(x, y) < 0 for field in (*CLASSES, *DISTRACTORS)]
    for i, one in enumerate(outlines):
        for other in outlines[:i]:
            assert (one & other).sum() / (one | other).sum() < 0.9
