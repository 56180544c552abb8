"""Watermarks lie where their masks say; crafted maps by hand; each wins on its own dataset."""

from dataclasses import replace

import pytest
import torch

from attrcheck.checks import semi_natural as module
from attrcheck.checks.semi_natural import (
    BAND,
    BOX,
    CLASSES,
    numbers,
    pooling,
    rect,
    semi_natural,
    stripes,
)
from attrcheck.datasets.shapes import HELD_OUT, SIZE, TRAINING, generate

COUNT = 60


@pytest.mark.parametrize("kind", [numbers, stripes])
def test_only_the_inside_of_the_mask_differs_from_the_scene(kind):
    marked = kind(False, COUNT, 1)
    scenes, _, _ = generate(HELD_OUT, COUNT)
    changed = (marked.images != scenes).any(1)
    assert not (changed & ~marked.masks).any()
    assert marked.masks.any(2).any(1).all()
    assert marked.labels.unique().tolist() == list(range(CLASSES))


def test_numbers_are_black_rectangles_with_one_white_digit_for_each_class():
    marked = numbers(False, COUNT, 1)
    inside = marked.images[:, :, *BOX]
    assert marked.masks.sum().item() == COUNT * inside[0, 0].numel()
    assert set(inside.unique().tolist()) == {0.0, 1.0}
    assert torch.equal(inside[:, 0], inside[:, 2])
    border = torch.cat([inside[..., :2].flatten(), inside[:, :, :2].flatten()])
    assert not border.any()
    drawn = {label: inside[marked.labels == label] for label in range(CLASSES)}
    assert all((marks == marks[0]).all() for marks in drawn.values())
    assert len({tuple(marks[0].flatten().tolist()) for marks in drawn.values()}) == CLASSES
    # A one has eight dots of four pixels.
    assert drawn[1][0, 0].sum() == 8 * 4


def test_stripes_write_the_class_plus_one_in_binary():
    marked = stripes(False, COUNT, 1)
    bands = marked.masks.view(COUNT, 4, BAND, SIZE)
    assert (bands.all(3).all(2) | ~bands.any(3).any(2)).all()
    written = bands[:, :, 0, 0].long() @ torch.tensor([8, 4, 2, 1])
    assert torch.equal(written, marked.labels + 1)
    assert (marked.images.movedim(1, -1)[marked.masks] == 1).all()


def test_scenes_say_nothing_of_the_class_and_training_has_its_own():
    one, other = numbers(True, COUNT, 1), numbers(True, COUNT, 2)
    assert not torch.equal(one.labels, other.labels)
    assert torch.equal(one.images[:, :, :10], other.images[:, :, :10])
    scenes, labels, _ = generate(TRAINING, COUNT)
    assert torch.equal(one.images[:, :, :10], scenes[:, :, :10])
    assert not torch.equal(one.labels, labels)


def test_rect_is_a_rectangle_at_the_centre_of_gravity():
    maps = torch.full((1, SIZE, SIZE), -1.0)
    maps[0, 8, 20], maps[0, 12, 20] = 1.0, 3.0
    # Centre at row 11, column 20; half of 14 rows and of 10 columns.
    inside = rect(maps)[0].nonzero()
    assert inside.min(0).values.tolist() == [8, 18]
    assert inside.max(0).values.tolist() == [14, 22]
    assert rect(maps).sum() == 7 * 5


def test_pooling_spreads_what_is_positive_over_its_band():
    maps = torch.zeros(1, SIZE, SIZE)
    maps[0, 0, 0], maps[0, 1, 1], maps[0, BAND, 3] = 256.0, -9.0, 512.0
    pooled = pooling(maps)[0]
    assert (pooled[:BAND] == 1).all()
    assert (pooled[BAND : 2 * BAND] == 2).all()
    assert (pooled[2 * BAND :] == 0).all()


def test_a_network_that_learnt_nothing_gives_no_verdict(lab_of, monkeypatch):
    monkeypatch.setitem(module.TRAINING, "smoke", 32)
    monkeypatch.setitem(module.HELD_OUT, "smoke", 20)
    monkeypatch.setattr(module, "RECIPE", replace(module.RECIPE, epochs=1))
    lab = lab_of()
    verdict = semi_natural(replace(lab, settings=replace(lab.settings, profile="smoke")))
    assert verdict.passed is None
    assert verdict.reason == "the network did not learn the numbers and the stripes"


@pytest.mark.slow
def test_each_crafted_method_wins_on_its_own_dataset(lab_of, verdict_of):
    result = verdict_of("semi_natural", lab_of())
    assert result.status == "passed"
    figures = result.figures
    assert figures["numbers_rect"] > 0.9 > 0.5 > figures["numbers_pooling"]
    assert figures["stripes_pooling"] > 0.9 > figures["stripes_rect"]
