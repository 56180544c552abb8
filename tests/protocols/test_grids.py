"""Grids: laid out from labels alone, scored by where the class is, on models that take them."""

import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.contracts import Dataset
from attrcheck.errors import NotApplicableError
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.grids import GridPointing

COLOURS = 5


def colours(count=20):
    """One colour channel per class: bright in the images of the class."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % COLOURS
    images = torch.rand(count, COLOURS, 6, 6, generator=generator) / 4
    images[torch.arange(count), labels] += 0.7
    ids = tuple(f"c{at}" for at in range(count))
    mean, std = (0.5,) * COLOURS, (0.25,) * COLOURS
    return Dataset("colours", images, labels, COLOURS, mean, std, ids)


class Brightest(nn.Module):
    """The logit of a class is the brightest place of its channel, at any size."""

    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return self.scale * x.amax((2, 3))


def truth(model, images, targets):
    """The channel of the class."""
    return images[torch.arange(len(images)), targets].clamp(min=0)


def opposite(model, images, targets):
    chosen = truth(model, images, targets)
    return chosen.amax((1, 2), keepdim=True) - chosen


@pytest.fixture
def world(tiny):
    attrcheck.dataset("colours")(colours)
    attrcheck.model("brightest", datasets="colours")(lambda dataset: Brightest(5.0))
    attrcheck.model("unsure", datasets="colours")(lambda dataset: Brightest(0.1))
    attrcheck.model("fixed", datasets="colours")(fixed)
    tiny.methods = ()
    tiny.add("truth", truth)
    tiny.add("opposite", opposite)
    return tiny


def fixed(dataset):
    """Takes six times six pixels, and nothing else."""
    linear = nn.Linear(COLOURS * 36, COLOURS, bias=False)
    linear.weight.data = torch.eye(COLOURS).repeat_interleave(36, 1) / 5
    return nn.Sequential(nn.Flatten(), linear)


def test_a_grid_shows_the_image_and_others_of_other_classes(world):
    pair = world.lab().pair("colours", "brightest", 20)
    grids = GridPointing().arrange(pair)
    data = pair.dataset
    assert grids.images.shape == (20, COLOURS, 12, 12)
    assert torch.equal(grids.labels, data.labels)
    assert grids.ids == data.ids
    places = []
    for at, (grid, mask) in enumerate(zip(grids.images, grids.masks, strict=True)):
        cells = grid.unfold(1, 6, 6).unfold(2, 6, 6).permute(1, 2, 0, 3, 4).flatten(0, 1)
        shown = cells.mean((2, 3)).argmax(1)
        assert len(set(shown.tolist())) == 4  # of four classes
        (own,) = [k for k in range(4) if torch.equal(cells[k], data.images[at])]
        inside = mask.unfold(0, 6, 6).unfold(1, 6, 6).flatten(0, 1).flatten(1)
        assert inside.all(1).tolist() == [k == own for k in range(4)]
        places.append(own)
    assert set(places) == {0, 1, 2, 3}


def test_shards_and_numbers_of_images_do_not_matter(world):
    grids = [
        GridPointing().arrange(world.lab().pair("colours", "brightest", count)) for count in (8, 20)
    ]
    assert torch.equal(grids[0].images, grids[1].images[:8])


def test_who_points_at_the_class_wins(world):
    result = world.run("colours-brightest-grid_pointing", profile="full")
    assert result.outcomes["truth"].score > 0.5
    assert result.outcomes["opposite"].score < 0.25
    assert result.accuracy == 1  # of the images as they are, not of grids
    assert result.outcomes["truth"].passes["observation"] == [0.0, 0.0]


def test_maps_of_grids_are_not_those_of_images(world):
    grid = world.run("colours-brightest-grid_pointing")
    assert world.run("colours-brightest-morf").outcomes["truth"].status == "ok"
    again = world.run("colours-brightest-grid_pointing", run="the next")
    assert again.outcomes["truth"].score == grid.outcomes["truth"].score
    assert all(part.stored for part in again.provenance)


def test_a_model_that_takes_one_size_does_not_take_part(world):
    outcome = world.run("colours-fixed-grid_pointing").outcomes["truth"]
    assert outcome.status == "not_applicable"
    assert outcome.reason.startswith("the model does not take images of 12 x 12, such as a grid")


def test_a_model_that_is_sure_of_nothing_does_not_take_part(world):
    with pytest.raises(NotApplicableError, match="too few classes of 'colours' are recognised"):
        GridPointing().arrange(world.lab().pair("colours", "unsure", 8))


def test_images_that_the_model_does_not_know_are_counted():
    protocol = GridPointing()
    reduced = protocol.reduce({"score": np.array([0.5, np.nan, 0.7])})
    assert (reduced.score, reduced.undefined) == (pytest.approx(0.6), 1)
    assert protocols.get("grid_pointing").make("default").most_images == 40
