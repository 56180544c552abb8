from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
import torch

from attrcheck.contracts import Dataset
from attrcheck.datasets import objects as module
from attrcheck.datasets.objects import (
    CLASSES,
    HELD_OUT,
    ICONS,
    INGREDIENTS,
    PER_CLASS,
    PHOTOGRAPHS,
    SHA256,
    SIDE,
    SIZE,
    TRAINING,
    generate,
    objects,
)
from attrcheck.datasets.shipped import arrays
from attrcheck.methods.dummies import gaussian_centre

LICENCES = Path(module.__file__).with_name("LICENCES.md")
FREE = ("public domain", "CC0 1.0", "CC BY 2.0")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return objects()


def test_shapes_and_types(data):
    assert data.images.shape == (960, 3, 64, 64)
    assert data.images.dtype == torch.float32
    assert data.labels.dtype == torch.int64
    assert data.masks.shape == (960, 64, 64)
    assert data.masks.dtype == torch.bool
    assert data.images.min() >= 0
    assert data.images.max() <= 1
    assert data.classes == len(data.class_names) == 12


def test_the_bytes_are_the_same_everywhere(data):
    parts = (data.images, data.labels, data.masks)
    content = b"".join(part.numpy().tobytes() for part in parts)
    assert sha256(content).hexdigest()[:16] == "ed3db5d102787851"


def test_an_image_does_not_depend_on_how_many_are_drawn(data):
    images, labels, masks = generate(HELD_OUT, 77)
    assert torch.equal(images, data.images[:77])
    assert torch.equal(labels, data.labels[:77])
    assert torch.equal(masks, data.masks[:77])


def test_every_prefix_is_a_fair_sample(data):
    assert set(torch.bincount(data.labels).tolist()) == {80}
    for n in (12, 50, 100):
        counts = torch.bincount(data.labels[:n], minlength=12)
        assert counts.max() - counts.min() <= 1


def test_training_images_are_others(data):
    images, _, _ = generate(TRAINING, 480)
    seen = {image.tobytes() for image in data.images.numpy()}
    assert len(seen) == len(data)
    assert not seen & {image.tobytes() for image in images.numpy()}


def test_no_pixel_of_a_photograph_is_in_both_splits():
    whole = arrays(INGREDIENTS, SHA256)
    halves = zip(PHOTOGRAPHS, module._halves(TRAINING), module._halves(HELD_OUT), strict=True)
    for name, left, right in halves:
        assert np.array_equal(np.hstack([left, right]), whole[name] / np.float32(255))
        assert min(*left.shape[:2], *right.shape[:2]) >= module.CROP[1]


def test_training_is_the_training_split(data, monkeypatch):
    monkeypatch.setattr(module, "TRAINING_IMAGES", 60)
    images, labels = data.training()
    expected, expected_labels, _ = generate(TRAINING, 60)
    assert torch.equal(images, expected)
    assert torch.equal(labels, expected_labels)


def test_normalisation_is_that_of_the_training_split(data):
    images = data.normalise(generate(TRAINING, 480)[0])
    assert images.mean((0, 2, 3)).abs().max() < 0.05
    assert (images.std((0, 2, 3)) - 1).abs().max() < 0.05


def test_the_mask_is_where_the_deciding_object_was_drawn(data, monkeypatch):
    """Without that object, exactly the pixels of the mask are others."""
    paste, number = module._paste, iter(range(module.OBJECTS * 3))

    def all_but_the_last(canvas, icon):
        last = next(number) % module.OBJECTS == module.OBJECTS - 1
        return paste(canvas.copy() if last else canvas, icon)

    monkeypatch.setattr(module, "_paste", all_but_the_last)
    without, _, masks = generate(HELD_OUT, 3 * module.BLOCK)
    changed = (without != data.images[: len(without)]).any(1)
    assert torch.equal(masks, data.masks[: len(without)])
    assert not changed[~masks].any()
    # An icon can have the colour of what is behind it, to a byte.
    assert changed[masks].float().mean() > 0.995


def test_every_mask_is_of_an_objects_size(data):
    area = data.masks.sum((1, 2))
    assert area.min() >= 100
    assert area.max() <= (2 * module.RADIUS[1]) ** 2
    assert 0.05 < data.masks.float().mean() < 0.15


def test_who_looks_at_the_centre_gains_nothing(data):
    density = data.masks.float().mean(0)
    for share, gain in ((1 / 2, 1.01), (1 / 4, 0.95), (1 / 8, 0.6)):
        bump = gaussian_centre(torch.zeros(1, 3, SIZE, SIZE), share)[0]
        assert (density * bump).sum() / bump.sum() <= gain * density.mean()
    middle = density[SIZE // 4 : -SIZE // 4, SIZE // 4 : -SIZE // 4]
    assert middle.mean() <= density.mean()
    # And no side is favoured.
    for one, other in ((density[:32], density[32:]), (density[:, :32], density[:, 32:])):
        assert one.mean() == pytest.approx(float(other.mean()), rel=0.15)


def test_the_file_holds_what_is_listed():
    stored = arrays(INGREDIENTS, SHA256)
    assert set(stored) == {"icons", *PHOTOGRAPHS}
    assert stored["icons"].shape == (sum(map(len, ICONS.values())), SIDE, SIDE, 4)
    assert all(len(ICONS[name]) == PER_CLASS for name in CLASSES)
    codes = [code for codes in ICONS.values() for code in codes]
    assert len(set(codes)) == len(codes)
    assert INGREDIENTS.stat().st_size < 1_000_000


def test_author_and_licence_of_every_picture_are_stated():
    lines = [line.split(" | ") for line in LICENCES.read_text().splitlines()]
    rows = {cells[0].strip("| `"): cells[1:] for cells in lines if len(cells) == 5}
    stated = {name: cells for name, cells in rows.items() if name in PHOTOGRAPHS}
    assert set(stated) == set(PHOTOGRAPHS)
    for _, author, licence, source in stated.values():
        assert author
        assert licence in FREE
        assert source.startswith(("`skimage.data.", "`sklearn/"))
    table = {cells[0].strip("| "): cells[1].rstrip(" |") for cells in lines if len(cells) == 2}
    for name, codes in ICONS.items():
        assert table[name or "none"] == ", ".join(f"`{code}`" for code in codes)
    assert "Twemoji 16.0.1" in LICENCES.read_text()
    assert "CC BY 4.0" in LICENCES.read_text()
