"""Relevance mass, relevance rank and the pointing game, by hand."""

import numpy as np
import pytest
import torch

from attrcheck.engine.cases import table
from attrcheck.errors import AttrcheckError
from attrcheck.protocols import protocol as protocols
from tests.worlds import batch_of, linear_model, rows_of

MASK = torch.tensor([[True, True, False], [False, False, False], [False, False, True]])
MAP = torch.tensor([[4.0, -2.0, 3.0], [1.0, 0.0, 0.0], [0.0, 0.0, 2.0]])
NAMES = ["pointing_game", "relevance_mass", "relevance_rank"]


def reduction_of(name, maps, masks=None, seeds=None):
    model = linear_model(torch.ones(3, 3))
    masks = MASK.expand(len(maps), 3, 3) if masks is None else masks
    images, labels = torch.ones(len(maps), 1, 3, 3), torch.ones(len(maps), dtype=torch.int64)
    batch = batch_of(images, labels, model, seeds, masks=masks)
    protocol = protocols.get(name).make()
    return protocol.reduce(rows_of(protocol, model, batch, maps))


def test_mass_by_hand():
    # Positive are 4, 3, 1 and 2; inside lie 4 and 2.
    assert reduction_of("relevance_mass", MAP[None]).per_image.tolist() == [0.6]


def test_rank_by_hand():
    # Three pixels are inside; of the three highest, 4, 3 and 2, two are.
    assert reduction_of("relevance_rank", MAP[None]).per_image.tolist() == [2 / 3]


def test_pointing_by_hand():
    reduced = reduction_of(
        "pointing_game", torch.stack([MAP, -MAP, MAP * torch.tensor([0.1, 1, 1])])
    )
    # The highest of the second is the -(-2), inside; of the third the 3, outside.
    assert reduced.per_image.tolist() == [1, 1, 0]
    assert reduced.score == pytest.approx(2 / 3)


@pytest.mark.parametrize("name", NAMES)
def test_the_mask_itself_scores_one_and_the_rest_of_the_image_nothing(name):
    assert reduction_of(name, MASK[None].float()).score == 1
    assert reduction_of(name, (~MASK)[None].float()).score == 0


def test_a_map_without_positive_values_has_no_mass():
    reduced = reduction_of("relevance_mass", torch.stack([MAP, -MAP.abs(), 0 * MAP]))
    assert np.isnan(reduced.per_image).tolist() == [False, True, True]
    assert reduced.score == 0.6
    assert reduced.undefined == 2


@pytest.mark.parametrize("name", NAMES)
def test_an_image_without_a_truth_is_left_out_and_counted(name):
    masks = torch.stack([MASK, torch.zeros_like(MASK)])
    reduced = reduction_of(name, torch.stack([MASK.float(), MAP]), masks)
    assert np.isnan(reduced.per_image).tolist() == [False, True]
    assert (reduced.score, reduced.undefined) == (1, 1)
    reduced = reduction_of(name, MAP[None], torch.zeros(1, 3, 3))
    assert np.isnan(reduced.score)
    assert reduced.undefined == 1


@pytest.mark.parametrize("name", ["pointing_game", "relevance_rank"])
def test_a_flat_map_is_right_as_often_as_chance(name):
    reduced = reduction_of(name, torch.zeros(3000, 3, 3))
    assert reduced.score == pytest.approx(3 / 9, abs=0.04)


def test_masks_may_be_whole_numbers():
    assert reduction_of("relevance_mass", MAP[None], MASK[None].to(torch.uint8)).score == 0.6


@pytest.mark.parametrize("name", NAMES)
def test_without_masks_there_is_an_error_and_in_the_table_no_case(name):
    model = linear_model(torch.ones(3, 3))
    batch = batch_of(torch.ones(1, 1, 3, 3), torch.tensor([1]), model)
    with pytest.raises(AttrcheckError, match="no masks"):
        protocols.get(name).make().observe(model, batch, MAP[None], {})
    cases = table(model="resnet", protocol=f"morf,{name}")
    assert [case.dataset for case in cases if case.protocol == name] == ["objects", "shapes"]
    assert {case.dataset for case in cases if case.protocol == "morf"} == {
        "digits",
        "objects",
        "shapes",
    }


@pytest.mark.parametrize("name", NAMES)
def test_no_pass_of_the_model(name):
    protocol = protocols.get(name).make()
    batch = batch_of(
        torch.ones(1, 1, 3, 3), torch.tensor([1]), linear_model(torch.ones(3, 3)), masks=MASK[None]
    )
    rows = protocol.observe(None, batch, MAP[None], {})
    assert list(rows) == ["score"]
