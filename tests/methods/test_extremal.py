"""Extremal perturbation finds what keeps the class, within its area."""

import math

import pytest
import torch
from torch import nn

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import prepare
from attrcheck.methods import extremal_perturbation as extremal
from attrcheck.methods import method
from attrcheck.methods._adam import Adam
from attrcheck.tensors.batching import limited_to
from tests.worlds import FAMILIES, random_family, smooth_images, trained_family


class Linear(nn.Module):
    """The sum of one region for the first class, of another for the second."""

    def __init__(self, regions, scale=1.0):
        super().__init__()
        self.regions, self.scale = regions, scale
        self.samples = 0

    def forward(self, x):
        self.samples += len(x)
        return self.scale * torch.stack([(x * r).sum((1, 2, 3)) for r in self.regions], 1)


def regions():
    """Two regions of 0.24 of the image each, which do not meet."""
    both = torch.zeros(2, 32, 32)
    both[0, 2:16, 3:21] = 1
    both[1, 20:31, 6:28] = 1
    return both / both.sum((1, 2), keepdim=True) * 20


def test_finds_the_pixels_that_a_linear_model_looks_at():
    model, images = Linear(regions()), torch.ones(2, 1, 32, 32)
    masks = extremal.extremal_masks(model, images, torch.tensor([0, 1]), 200)
    for mask, region in zip(masks, regions() > 0, strict=True):
        assert mask[region].mean() > 0.9
        assert mask[~region].mean() < 0.15
        assert mask.flatten().topk(int(region.sum())).values.min() > mask[~region].mean()
    assert model(images * masks[:, None])[0, 0] > 18


def test_the_sign_matters():
    # The region now speaks against the class: the mask goes elsewhere.
    model, images = Linear(-regions()), torch.ones(1, 1, 32, 32)
    (mask,) = extremal.extremal_masks(model, images, torch.tensor([0]), 200)
    assert mask[regions()[0] > 0].mean() < 0.1
    assert mask.mean().item() == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize("side", [8, 20, 32])
def test_masks_have_the_area_and_range(side):
    model = Linear(smooth_images(2, side, 1, seed=3), 0.1)
    masks = extremal.extremal_masks(model, smooth_images(3, side, 1), torch.tensor([0, 1, 1]), 200)
    assert masks.shape == (3, side, side)
    assert masks.mean((1, 2)).tolist() == pytest.approx([0.3] * 3, abs=0.06)
    assert masks.min() >= 0
    assert masks.max() <= 1


def test_smoothing_is_a_max_convolution():
    grid = torch.zeros(1, 1, 7, 7)
    grid[0, 0, 3, 3] = 1
    found = extremal.smoothed(grid)[0, 0]
    for row in range(7):
        for column in range(7):
            distance = math.hypot(row - 3, column - 3)
            near = max(abs(row - 3), abs(column - 3)) <= 2
            largest = math.exp(-(max(0, distance - 1) ** 2) / 2) if near else 0
            # One value of 25 is not zero: v e^20v / (e^20v + 24).
            weight = math.exp(20 * largest)
            wanted = largest * weight / (weight + 24)
            assert found[row, column].item() == pytest.approx(wanted, abs=1e-6)


def test_slopes_are_brought_back_as_autograd_does():
    grid = torch.rand(2, 1, 9, 7, generator=torch.manual_seed(0)).requires_grad_()
    upstream = torch.randn(2, 1, 9, 7, generator=torch.manual_seed(1))
    (wanted,) = torch.autograd.grad(extremal.smoothed(grid), grid, upstream)
    found = extremal._smoothed_from(upstream, *extremal._smoothed(grid.detach())[1:])
    assert torch.allclose(found, wanted, atol=1e-6)
    images = torch.zeros(2, 1, 20, 16)
    upstream = torch.randn(images.shape, generator=torch.manual_seed(2))
    (wanted,) = torch.autograd.grad(extremal._enlarged(grid, images), grid, upstream)
    assert torch.allclose(extremal._enlarged_from(upstream, grid), wanted, atol=1e-6)


def test_a_share_of_the_largest_and_the_last_of_those_that_are_alike():
    values = torch.tensor([[1.0, 5, 3, 3, 3, 0, 2, 3, 1, 1], [0.5] * 10])
    found = extremal._largest(values, 0.3)
    assert found.tolist() == [[0, 1, 0, 0, 1, 0, 0, 1, 0, 0], [0] * 7 + [1] * 3]


def test_a_step_is_one_of_torchs_adam():
    values = torch.rand(40, generator=torch.manual_seed(0))
    wanted = values.clone().requires_grad_()
    adam, torchs = Adam(values, 0.02, epsilon=0.1), torch.optim.Adam([wanted], lr=0.02, eps=0.1)
    for seed in range(20):
        wanted.grad = torch.randn(40, generator=torch.manual_seed(seed))
        adam.step(wanted.grad)
        torchs.step()
    assert torch.allclose(values, wanted, rtol=1e-6, atol=0)


def test_smoothing_keeps_what_is_flat():
    assert torch.allclose(extremal.smoothed(torch.zeros(1, 1, 9, 9)), torch.zeros(1, 1, 9, 9))
    full = extremal.smoothed(torch.ones(1, 1, 9, 9))
    assert torch.allclose(full, full[0, 0, 0, 0])
    assert full.min() > 0.95


@pytest.mark.parametrize("family", FAMILIES)
def test_families_batches_and_traces(family):
    model, images, targets = prepare(random_family(family)), smooth_images(3), torch.arange(3)
    before = Snapshot.of(model)
    with torch.no_grad():
        together = extremal.extremal_masks(model, images, targets, 15)
    assert before.change(model) is None
    assert all(part.grad is None for part in model.parameters())
    with limited_to(1):
        again = extremal.extremal_masks(model, images, targets, 15)
    alone = extremal.extremal_masks(model, images[1:2], targets[1:2], 15)
    assert torch.allclose(again, together, atol=1e-3)
    assert torch.allclose(alone[0], together[1], atol=1e-5)
    assert not together.requires_grad
    assert method.get("extremal_perturbation").not_applicable(model) is None


def test_steps_improve_the_objective():
    network, images, targets = trained_family("resnet", 4)
    model, kept = prepare(network), []
    for steps in (2, 60):
        masks = extremal.extremal_masks(model, images, targets, steps)
        # Of equal area: the best 30% of pixels.
        binary = (masks > masks.flatten(1).quantile(0.7, dim=1)[:, None, None]).float()
        with torch.no_grad():
            logits = model(images * binary[:, None]).gather(1, targets[:, None])
        kept.append(logits.mean().item())
    assert kept[1] > kept[0] + 1


def test_what_is_registered():
    spec, model = method.get("extremal_perturbation"), Linear(regions())
    maps = spec.attribute(model, torch.ones(1, 1, 32, 32), torch.tensor([0]))
    assert maps.shape == (1, 32, 32)
    # One pass is there to learn how much memory a sample takes; batches are filled up to sixteen.
    assert (model.samples - 1) / 16 == 200
    assert spec.passes == (200, 200)
    assert (spec.family, spec.reference) == ("perturbation", "Fong et al. 2019")


class Scarce(nn.Module):
    """A network for which memory runs out beyond four images."""

    def __init__(self, network):
        super().__init__()
        self.network, self.most = network, 0

    def forward(self, x):
        if len(x) > 4:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        self.most = max(self.most, len(x))
        return self.network(x)


def test_extremal_perturbation_goes_on_when_memory_runs_out():
    network, images, targets = random_family("vgg"), smooth_images(6), torch.arange(6)
    model = prepare(network)
    wanted = extremal.extremal_masks(model, images, targets, 5)
    scarce = Scarce(model)
    found = extremal.extremal_masks(scarce, images, targets, 5)
    assert scarce.most == 4
    assert torch.allclose(found, wanted, atol=1e-4)
