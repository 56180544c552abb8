"""Disconnected grids: nothing outside of one cell can matter, and maps that say so lose."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import fx, nn

import attrcheck
from attrcheck.contracts import Dataset, Disconnection
from attrcheck.datasets.digits import digits
from attrcheck.errors import NotApplicableError
from attrcheck.graph.disconnecting import disconnected as disconnect
from attrcheck.graph.halves import needs_middle
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.nodes import PART
from attrcheck.graph.preparing import prepare
from attrcheck.methods.attention import needs_attention
from attrcheck.methods.stages import needs_stage
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.disconnected import Disconnected
from attrcheck.training.weights import load_weights

COLOURS = 5
SIDE = 8
EMBEDDED = [name for name in models if models.get(name).embedded]


def colours(count=20):
    """One colour channel per class: bright in the images of the class."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(count) % COLOURS
    images = torch.rand(count, COLOURS, SIDE, SIDE, generator=generator) / 4
    images[torch.arange(count), labels] += 0.7
    ids = tuple(f"c{at}" for at in range(count))
    mean, std = (0.5,) * COLOURS, (0.25,) * COLOURS
    return Dataset("colours", images, labels, COLOURS, mean, std, ids)


def counting(dataset=None):
    """The logit of a class is the mean of its channel, blurred; no unit is ever at rest."""
    blur = nn.Conv2d(COLOURS, COLOURS, 3, padding=1, groups=COLOURS)
    nn.init.constant_(blur.weight, 1 / 3)
    nn.init.constant_(blur.bias, 20.0)
    return nn.Sequential(blur, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())


def flat(dataset=None):
    """No maps at all."""
    linear = nn.Linear(COLOURS * SIDE**2, COLOURS, bias=False)
    linear.weight.data = torch.eye(COLOURS).repeat_interleave(SIDE**2, 1) / 8
    return nn.Sequential(nn.Flatten(), linear)


def steepness(model, images, targets):
    images = images.detach().requires_grad_()
    chosen = model(images).gather(1, targets[:, None]).sum()
    return torch.autograd.grad(chosen, images)[0].abs().sum(1)


def centred(model, images, targets):
    """A bump in the middle of the image, whatever the model."""
    rows, columns = (torch.linspace(-1, 1, length) for length in images.shape[2:])
    return (-4 * (rows[:, None] ** 2 + columns**2)).exp().expand(len(images), -1, -1)


def edges(model, images, targets):
    return images.sum(1).diff(dim=2, append=images[:, :, :, -1:].sum(1)).abs()


def class_colour(model, images, targets):
    """Where the class is, whatever the model looks at."""
    return images[torch.arange(len(images)), targets].clamp(min=0)


@pytest.fixture
def world(tiny):
    attrcheck.dataset("colours")(colours)
    attrcheck.model("counting", datasets="colours")(counting)
    attrcheck.model("flat", datasets="colours")(flat)
    tiny.methods = ()
    for method in (steepness, centred, edges, class_colour):
        tiny.add(method.__name__, method)
    return tiny


def grids(images):
    """Four different images in each grid."""
    shown = [images.roll(step, 0) for step in range(4)]
    return torch.cat([torch.cat(shown[:2], 3), torch.cat(shown[2:], 3)], 2), shown


@pytest.mark.parametrize("cell", [0, 1, 3])
def test_the_disconnected_network_is_the_network_on_one_cell(cell):
    data = colours(4)
    images = data.normalise(data.images)
    network = counting().eval()
    disconnected = disconnect(
        prepare(network, images[:2]), images, Disconnection(2, cell, apart=True)
    )
    laid_out, shown = grids(images)
    assert torch.allclose(disconnected(laid_out), network(shown[cell]))
    traced = prepare(disconnected, laid_out[:2])
    assert isinstance(traced, fx.GraphModule)
    gradient = steepness(traced, laid_out, data.labels.roll(cell))
    inside = torch.zeros(16, 16, dtype=torch.bool)
    inside[8 * (cell // 2) :, 8 * (cell % 2) :][:8, :8] = True
    assert (gradient[:, ~inside] == 0).all()
    assert gradient[:, inside].any()


@settings(max_examples=10, deadline=None)
@given(
    side=st.integers(2, 3),
    size=st.tuples(st.integers(5, 9), st.integers(5, 9)),
    stride=st.integers(1, 2),
    seed=st.integers(0, 99),
    data=st.data(),
)
def test_no_pixel_of_another_cell_ever_matters(side, size, stride, seed, data):
    cell = data.draw(st.integers(0, side**2 - 1))
    torch.manual_seed(seed)
    network = nn.Sequential(
        nn.Conv2d(1, 2, 3, stride, 1), nn.Tanh(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    images = torch.randn(2, 1, *size)
    how = Disconnection(side, cell, apart=True)
    disconnected = disconnect(prepare(network, images), images, how)
    grid = torch.randn(1, 1, side * size[0], side * size[1])
    top, left = size[0] * (cell // side), size[1] * (cell % side)
    box = (..., slice(top, top + size[0]), slice(left, left + size[1]))
    other = torch.randn_like(grid)
    other[box] = grid[box]
    assert torch.equal(disconnected(grid), disconnected(other))
    assert torch.allclose(disconnected(grid), network(grid[box]), atol=1e-6)


def test_the_head_alone_is_disconnected_in_part():
    data = colours(4)
    images = data.normalise(data.images)
    network = counting().eval()
    disconnected = disconnect(
        prepare(network, images[:2]), images, Disconnection(2, 3, apart=False)
    )
    laid_out, _ = grids(images)
    maps = network[:2](laid_out)
    assert torch.allclose(disconnected(laid_out), maps[:, :, 8:, 8:].mean((2, 3)))
    gradient = steepness(disconnected, laid_out, data.labels)
    outside = gradient.clone()
    outside[:, 8:, 8:] = 0
    assert outside.any()  # at the edge, where the kernel reaches into the cell
    assert not outside[:, :7].any()
    assert not outside[:, :, :7].any()


def test_the_corners_show_the_class_and_the_others_do_not(world):
    pair = world.lab().pair("colours", "counting", 20)
    for corner, own in (("first", 0), ("last", 3)):
        arranged = Disconnected(corner=corner).arrange(pair)
        for at, (grid, mask) in enumerate(zip(arranged.images, arranged.masks, strict=True)):
            cells = grid.unfold(1, 8, 8).unfold(2, 8, 8).permute(1, 2, 0, 3, 4).flatten(0, 1)
            assert torch.equal(cells[own], pair.dataset.images[at])
            assert not torch.equal(cells[3 - own], cells[own])
            shown = cells.mean((2, 3)).argmax(1).tolist()
            assert shown[0] == shown[3] == int(pair.dataset.labels[at])
            assert len(set(shown)) == 3
            assert mask.nonzero().float().mean(0).tolist() == (
                [3.5, 3.5] if own == 0 else [11.5] * 2
            )


def test_what_cannot_matter_costs(world):
    outcomes = world.run("colours-counting-difull", profile="full").outcomes
    scores = {name: outcome.score for name, outcome in outcomes.items()}
    assert scores["steepness"] == 1
    assert scores["centred"] == pytest.approx(0.25, abs=0.01)
    assert scores["edges"] == pytest.approx(0.25, abs=0.03)
    assert scores["class_colour"] == pytest.approx(0.5, abs=0.1)  # both corners show the class
    passes = outcomes["steepness"].passes
    assert passes == {"attribution": [2.0, 2.0], "observation": [0.0, 0.0]}  # a map of each corner


def test_the_cells_meet_before_the_head(world):
    scores = world.run("colours-counting-dipart", profile="full").outcomes
    # Of the three rows that see a row of pixels, so many are in the cell: 2, 3, 3, 3, 3, 3, 3, 2
    # inside of it, and 1 beyond its edge to the next cell; columns alike.
    assert scores["steepness"].score == pytest.approx((22 / 23) ** 2)
    assert scores["centred"].score == pytest.approx(0.25, abs=0.01)


def test_again_from_the_store(world):
    first = world.run("colours-counting-difull")
    again = world.run("colours-counting-difull", run="the next")
    assert all(part.stored for part in again.provenance)
    for name, outcome in first.outcomes.items():
        assert again.outcomes[name].score == outcome.score


def test_a_network_without_maps_is_cut_at_its_image_alone(world):
    difull = world.run("colours-flat-difull").outcomes["steepness"]
    assert (difull.status, difull.score) == ("ok", 1)
    outcome = world.run("colours-flat-dipart").outcomes["steepness"]
    assert outcome.status == "not_applicable"
    assert outcome.reason.startswith("the model is not a convolutional network: no maps hold all")


def test_maps_that_do_not_grow_with_the_image_cannot_be_cut():
    fixed = nn.Sequential(
        nn.Conv2d(COLOURS, COLOURS, 1), nn.AdaptiveAvgPool2d(4), nn.Conv2d(COLOURS, COLOURS, 1),
        nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    images = torch.randn(2, COLOURS, SIDE, SIDE)
    with pytest.raises(NotApplicableError, match="last maps of the model, 4 x 4, become 4 x 4 on"):
        disconnect(prepare(fixed, images), images, Disconnection(2, 0, apart=False))


def family(name):
    data = digits().head(4)
    network = models.get(name).network(data).eval()
    load_weights(network, "digits", name)
    images = data.normalise(data.images[:])
    return network, prepare(network, images[:2]), images


def test_a_transformer_sees_the_cell_and_no_method_takes_its_tokens_for_the_grid():
    network, model, images = family("vit")
    laid_out, shown = grids(images)
    cut = disconnect(model, images, Disconnection(2, 1, apart=True))
    disconnected = prepare(cut, laid_out[:2])
    assert torch.allclose(disconnected(laid_out), network(shown[1]), atol=1e-4)
    assert {needs_stage(model), needs_attention(model)} == {None}
    assert {needs_stage(disconnected), needs_attention(disconnected)} == {PART}
    assert needs_middle(disconnected) is not None
    with pytest.raises(NotApplicableError, match="not a convolutional network"):
        disconnect(model, images, Disconnection(2, 1, apart=False))


@pytest.mark.slow
@pytest.mark.parametrize("apart", [True, False])
@pytest.mark.parametrize("name", sorted(set(EMBEDDED) - {"vit"}))
def test_embedded_families_are_cut_at_their_last_stage(name, apart):
    network, model, images = family(name)
    laid_out, shown = grids(images)
    built = disconnect(model, images, Disconnection(2, 2, apart))
    disconnected = prepare(built, laid_out[:2])
    with torch.no_grad():
        logits, wanted = disconnected(laid_out), network(shown[2])
    assert torch.allclose(logits, wanted, atol=1e-4) == apart
    stage, alone = last_stage(disconnected, laid_out), last_stage(model, images)
    assert stage.layout.grid == tuple(2 * length for length in alone.layout.grid)
    assert needs_stage(disconnected) is None


def test_an_image_is_scored_by_the_corners_that_have_a_score():
    rows = {
        "first_score": np.array([1.0, 0.5, np.nan]),
        "last_score": np.array([0.5, np.nan, np.nan]),
    }
    reduced = protocols.get("difull").make().reduce(rows)
    assert (reduced.score, reduced.undefined) == (0.625, 1)
