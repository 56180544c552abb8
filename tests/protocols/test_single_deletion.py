"""Single deletion: the published figures, identities, ties that floats break, and bad grids."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from torch import nn
from torch.nn import functional as F

import attrcheck
from attrcheck.errors import AttrcheckError
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.single_deletion import SingleDeletion
from attrcheck.tensors.cells import cell_masks
from tests.worlds import batch_of, linear_model, rows_of, single_deletion_vectors

METHODS = [
    *("grad_raw", "grad_abs", "ixg_raw", "ixg_abs", "ixg_relu", "ig_raw", "ig_abs", "igu_raw"),
    *("gradcam", "gradcampp", "xgradcam", "layercam", "rise"),
]


def observed(name, protocol=None):
    """The rows of a published map, and the published figures."""
    network, images, targets, maps, published = single_deletion_vectors()
    batch = batch_of(images, targets, network)
    return rows_of(protocol or SingleDeletion(), network, batch, maps[name]), published


def test_drops_are_the_published_ones():
    rows, published = observed("ixg_raw")
    for ours, theirs in (("logit", "logit"), ("probability", "softmax")):
        wanted = published[f"drop_{theirs}"].reshape(4, 16)
        # Theirs are differences of float32, ours of the same: relative to the largest of them.
        error = np.abs(rows[f"drop_{ours}"] - wanted).max() / np.abs(wanted).max()
        assert error < 1e-6


@pytest.mark.parametrize("name", METHODS)
def test_cell_sums_are_the_published_ones(name):
    rows, published = observed(name)
    wanted = published[f"patchsum_{name}"].reshape(4, 16)
    assert np.abs(rows["attribution"] - wanted).max() < 1e-6 * np.abs(wanted).max()


@pytest.mark.parametrize("name", METHODS)
def test_scores_are_the_published_ones(name):
    rows, published = observed(name)
    reduced = SingleDeletion().reduce(rows)
    np.testing.assert_allclose(reduced.per_image, published[f"sds_zeros_{name}"], atol=1e-6)
    assert reduced.score == pytest.approx(published[f"sds_zeros_{name}"].mean(), abs=1e-6)


@pytest.mark.parametrize("name", ["ixg_raw", "ig_raw"])
@pytest.mark.parametrize("grid", [2, 8])
def test_scores_on_other_grids_are_the_published_ones(grid, name):
    rows, published = observed(name, SingleDeletion(grid))
    scores = SingleDeletion(grid).reduce(rows).per_image
    np.testing.assert_allclose(scores, published[f"grid{grid}_{name}"], atol=1e-6)


@pytest.mark.parametrize("name", ["grad_raw", "grad_abs", "ixg_raw", "ixg_abs", "ixg_relu"])
def test_scores_after_the_softmax_are_the_published_ones(name):
    """They attribute the probability and measure its drop; here the two are chosen separately."""
    network, images, targets, _, published = single_deletion_vectors()
    inputs = images.clone().requires_grad_()
    network(inputs).softmax(1).gather(1, targets[:, None]).sum().backward()
    slope = inputs.grad if name.startswith("grad") else inputs.grad * images
    bend = {"raw": lambda values: values, "abs": torch.abs, "relu": torch.relu}[name.split("_")[1]]
    batch = batch_of(images, targets, network)
    protocol = SingleDeletion(measure="probability")
    reduced = protocol.reduce(rows_of(protocol, network, batch, bend(slope.sum(1))))
    np.testing.assert_allclose(reduced.per_image, published[f"sds_softmaxmodel_{name}"], atol=1e-6)


def published_blur(images, keep):
    """51x51 on 32x32 pixels, sigma 41 taken times the root of two, black beyond the border."""
    places = torch.arange(-25.0, 26.0, dtype=torch.float64)
    row = torch.exp(-(places**2) / (2 * (41 * 2**0.5) ** 2))
    row = row / row.sum()
    flat = images.flatten(0, 1)[:, None].double()
    blurred = F.conv2d(flat, (row[:, None] * row)[None, None], padding=25).view_as(images)
    return torch.where(keep[:, None], images, blurred.float())


def test_the_blur_of_the_published_code_has_the_defects_that_are_known_of_it():
    _, images, _, _, published = single_deletion_vectors()
    blurred = published_blur(images, torch.zeros(4, 32, 32, dtype=torch.bool))
    np.testing.assert_allclose(blurred, published["blur_of_images"], atol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_scores_with_that_blur_are_the_published_ones(name, registries):
    attrcheck.removal("published_blur", fixed=True)(published_blur)
    protocol = SingleDeletion(removal="published_blur")
    rows, published = observed(name, protocol)
    scores = protocol.reduce(rows).per_image
    np.testing.assert_allclose(scores, published[f"sds_blur_{name}"], atol=1e-6)


def cells(values, side):
    """A map that gives each cell of a 4x4 grid this sum, unevenly spread."""
    height = side // 4
    shares = torch.rand(side, side) + 0.1
    totals = F.avg_pool2d(shares[None, None], height, divisor_override=1)[0, 0]
    spread = shares / totals.repeat_interleave(height, 0).repeat_interleave(height, 1)
    return values.view(4, 4).repeat_interleave(height, 0).repeat_interleave(height, 1) * spread


@given(st.integers(0, 2**32 - 1), st.sampled_from([4, 8, 12]))
def test_the_drops_themselves_score_one_and_their_negation_minus_one(seed, side):
    torch.manual_seed(seed)
    model = linear_model(torch.randn(side, side))
    batch = batch_of(torch.randn(2, 1, side, side), torch.tensor([1, 1]), model)
    protocol = SingleDeletion()
    drops = torch.from_numpy(protocol.shared.observe(model, batch)["drop_logit"])
    maps = torch.stack([cells(drop, side) for drop in drops])
    for sign in (1, -1):
        reduced = protocol.reduce(rows_of(protocol, model, batch, sign * maps))
        assert reduced.per_image.tolist() == [sign, sign]
        assert (reduced.score, reduced.undefined) == (sign, 0)


def test_contributions_to_a_linear_model_are_its_drops():
    torch.manual_seed(0)
    weight = torch.randn(8, 8)
    model, images = linear_model(weight), torch.randn(3, 1, 8, 8)
    rows = rows_of(
        SingleDeletion(),
        model,
        batch_of(images, torch.tensor([1, 1, 1]), model),
        images[:, 0] * weight,
    )
    np.testing.assert_allclose(rows["attribution"], rows["drop_logit"], atol=1e-5)


def test_a_constant_map_has_no_score_and_is_counted():
    model = linear_model(torch.randn(8, 8))
    batch = batch_of(torch.randn(3, 1, 8, 8), torch.tensor([1, 1, 1]), model)
    maps = torch.randn(3, 8, 8)
    maps[1] = 0.1  # whose cells are 0.4 up to rounding
    reduced = SingleDeletion().reduce(rows_of(SingleDeletion(), model, batch, maps))
    assert np.isnan(reduced.per_image).tolist() == [False, True, False]
    assert reduced.undefined == 1
    assert reduced.score == pytest.approx(np.nanmean(reduced.per_image))
    maps[:] = 0
    reduced = SingleDeletion().reduce(rows_of(SingleDeletion(), model, batch, maps))
    assert np.isnan(reduced.score)
    assert reduced.undefined == 3


def test_a_model_that_does_not_care_gives_no_score():
    model = linear_model(torch.zeros(8, 8))
    batch = batch_of(torch.randn(2, 1, 8, 8), torch.tensor([0, 1]), model)
    reduced = SingleDeletion().reduce(rows_of(SingleDeletion(), model, batch, torch.randn(2, 8, 8)))
    assert np.isnan(reduced.score)
    assert reduced.undefined == 2


@pytest.mark.parametrize("side", [32, 224])
def test_a_centred_gaussian_has_three_groups_of_ties(side):
    """Corners, edges and the middle; float32 sums would tell some of them apart."""
    places = torch.arange(side) - (side - 1) / 2
    bell = torch.exp(-(places[:, None] ** 2 + places**2) / (2 * (side / 4) ** 2)).float()
    model = nn.Sequential(nn.AdaptiveAvgPool2d(4), linear_model(torch.arange(16.0)))
    batch = batch_of(torch.ones(1, 1, side, side), torch.tensor([1]), model)
    rows = rows_of(SingleDeletion(), model, batch, bell[None])
    # Drops rise from cell to cell: places 0 .. 15 against ranks of corners, edges and the middle.
    kinds = [0, 1, 1, 0, 1, 2, 2, 1, 1, 2, 2, 1, 0, 1, 1, 0]
    wanted = spearmanr(kinds, rows["drop_logit"][0]).statistic
    assert SingleDeletion().reduce(rows).score == pytest.approx(wanted, abs=1e-12)
    assert len(set(rows["attribution"][0].astype(np.float32).tolist())) == 3


def test_cells_go_row_by_row():
    masks = cell_masks(2, torch.zeros(1, 1, 4, 6))
    assert masks.shape == (4, 4, 6)
    assert (masks.sum(0) == 1).all()
    assert masks[1].nonzero().tolist() == [[y, x] for y in (0, 1) for x in (3, 4, 5)]
    assert masks[2, 2:, :3].all()


@pytest.mark.parametrize("shape", [(10, 8), (8, 10)])
def test_a_grid_that_does_not_divide_is_an_error_that_says_so(shape):
    model = linear_model(torch.ones(*shape))
    batch = batch_of(torch.ones(1, 1, *shape), torch.tensor([1]), model)
    says = f"grid of 4x4 does not cut images of {shape[0]}x{shape[1]} .* choose a grid"
    with pytest.raises(AttrcheckError, match=says):
        SingleDeletion().shared.observe(model, batch)
    with pytest.raises(AttrcheckError, match=says):
        SingleDeletion().observe(model, batch, torch.ones(1, *shape), {})


@pytest.mark.parametrize(
    ("suffix", "grid", "removal"),
    [
        ("", 4, "mean"),
        ("_2", 2, "mean"),
        ("_8", 8, "mean"),
        ("_blur", 4, "blur"),
        ("_random", 4, "uniform"),
    ],
)
def test_the_family(suffix, grid, removal):
    plain, tuned = (protocols.get(name + suffix).make() for name in ("sds", "idsds"))
    for made in (plain, tuned):
        assert (made.grid, made.removal, made.measure) == (grid, removal, "logit")
    assert plain.tuning is None
    assert plain.needs == ()
    assert (tuned.tuning.grid, tuned.tuning.removal) == (grid, removal)
    assert tuned.needs == ("training",)
    assert plain.shared == tuned.shared
    assert plain.observation != tuned.observation


def test_both_outputs_are_in_the_same_rows():
    assert SingleDeletion(measure="probability").observation == SingleDeletion().observation
