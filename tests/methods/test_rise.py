"""RISE: its masks, its estimate, and what it converges to."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods import method, perturbation
from attrcheck.tensors.batching import limited_to
from tests.worlds import FAMILIES, random_family, smooth_images

VARIANTS = ["rise", "rise_200", "rise_uniform"]


class Chance(nn.Module):
    """Its softmax is linear: the first class has probability 0.3 + <w, x>."""

    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def forward(self, x):
        first = 0.3 + (x * self.weights).sum((1, 2, 3))
        return torch.stack([first, 1 - first], 1).log()


def linear_chance(side=16):
    """Two regions matter: one speaks for the first class, with 0.6, and one against it."""
    image = smooth_images(1, side, seed=4)
    parts = torch.zeros(side, side)
    parts[2:6, 3:7] = 0.6 / 16
    parts[9:12, 8:13] = -0.25 / 15
    weights = parts / image[0] / 3
    return Chance(weights), image, weights


def enlarged(side):
    """All shifts of the enlargement, by hand: [shifts, side, cells], pixels x cells."""
    cell = -(-side // perturbation.CELLS)
    large = (perturbation.CELLS + 1) * cell
    matrix = np.zeros((large, perturbation.CELLS))
    for pixel in range(large):
        place = (pixel + 0.5) * perturbation.CELLS / large - 0.5
        low = int(np.floor(place))
        for cell_at, share in ((low, low + 1 - place), (low + 1, place - low)):
            matrix[pixel, min(max(cell_at, 0), perturbation.CELLS - 1)] += share
    return [matrix[shift : shift + side] for shift in range(cell)]


def expectation(weights, image):
    """E[p(x m) m] / KEEP over all grids and shifts: grids in closed form, shifts one by one."""
    side, p = image.shape[-1], perturbation.KEEP
    parts = (weights * image[0]).sum(0).double().numpy()
    total = []
    for rows, columns in product(enlarged(side), repeat=2):
        mean = np.outer(rows.sum(1), columns.sum(1)) * p
        grid = rows.T @ parts @ columns
        covariance = p * (1 - p) * rows @ grid @ columns.T
        total.append((0.3 + (parts * mean).sum()) * mean + covariance)
    return torch.tensor(np.mean(total, 0) / p)


def correlation(a, b):
    return torch.corrcoef(torch.stack([a.flatten().double(), b.flatten().double()]))[0, 1].item()


def reference_net(data):
    layers = [nn.Conv2d(3, 8, 5, 2, 2), nn.Tanh(), nn.Conv2d(8, 12, 3, 2, 1), nn.Softplus()]
    net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 4)).eval()
    names = {"0": "c1", "2": "features.0", "6": "f"}
    parts = product(names.items(), ("weight", "bias"))
    net.load_state_dict({f"{at}.{p}": data[f"w_{name}.{p}"] for (at, name), p in parts})
    return net


def test_the_published_map_of_the_published_masks():
    loaded = np.load(Path(__file__).parents[1] / "data" / "rise.npz")
    data = {name: torch.tensor(value) for name, value in loaded.items()}
    net, masks = reference_net(data), data["rise_masks"]
    for image, target, wanted in zip(
        data["images"], data["targets"], data["attr_rise"], strict=True
    ):
        found = perturbation.expected_class(
            net, image, target, lambda part: masks[part], len(masks), torch.zeros_like(image)
        )
        assert torch.allclose(found, wanted[0], atol=1e-6)


@pytest.mark.parametrize(("height", "width"), [(32, 32), (20, 9), (5, 8)])
def test_masks_are_enlarged_grids_within_one_cell(height, width):
    generator = torch.Generator().manual_seed(0)
    masks = perturbation.random_masks(64, torch.Size((height, width)), generator)
    generator.manual_seed(0)
    grids = (torch.rand(64, 8, 8, generator=generator) < 0.1).double().numpy()
    options = list(product(enlarged(height), enlarged(width)))
    chosen = set()
    for mask, grid in zip(masks(slice(0, 64)), grids, strict=True):
        assert mask.shape == (height, width)
        errors = [np.abs(rows @ grid @ columns.T - mask.numpy()).max() for rows, columns in options]
        assert min(errors) < 1e-5
        chosen.add(int(np.argmin(errors)))
    assert len(chosen) > len(options) // 2


def test_a_tenth_is_kept():
    masks = perturbation.random_masks(4000, torch.Size((32, 32)), torch.Generator().manual_seed(0))
    assert masks(slice(0, 4000)).mean().item() == pytest.approx(0.1, abs=2e-3)
    assert torch.equal(masks(slice(100, 130)), masks(slice(0, 130))[100:])


def test_converges_to_its_expectation_on_a_linear_model():
    model, image, weights = linear_chance()
    wanted = expectation(weights, image)
    targets = torch.tensor([0])
    errors, correlations = [], []
    for count in (100, 1600, 25600):
        (found,) = perturbation.rise_maps(model, image, targets, (1,), count)
        errors.append((found - wanted).abs().mean().item())
        correlations.append(correlation(found, wanted))
    # Sixteen times the masks, a quarter of the error.
    assert errors[1] < errors[0] / 2
    assert errors[2] < errors[1] / 2
    assert correlations[0] < correlations[1] < correlations[2]
    assert correlations[2] > 0.98


def test_filling_takes_the_place_of_what_is_removed():
    model, image, _ = linear_chance()
    masks = perturbation.random_masks(8, image.shape[2:], torch.Generator().manual_seed(0))
    filling = smooth_images(1, 16, seed=9)[0]
    found = perturbation.expected_class(model, image[0], torch.tensor(1), masks, 8, filling)
    wanted = torch.zeros(16, 16)
    for mask in masks(slice(0, 8)):
        mixed = mask * image[0] + (1 - mask) * filling
        wanted += model(mixed[None]).softmax(1)[0, 1] * mask / 0.8
    assert torch.allclose(found, wanted, atol=1e-5)


def test_uniform_noise_is_between_minus_one_and_one():
    seen = []

    class Spy(nn.Module):
        def forward(self, x):
            seen.append(x.clone())
            return x.mean((2, 3))

    images, targets = torch.full((1, 3, 32, 32), 5.0), torch.tensor([0])
    perturbation.rise_maps(Spy(), images, targets, (3,), 40, uniform=True)
    # The first pass only measures. Where a mask is zero there is but noise, the same for all.
    masked = torch.cat(seen[1:])
    noise = masked.amin(0)
    assert -1 <= noise.min() < -0.95
    assert 0.95 < noise.max() <= 1
    assert noise.mean().abs() < 0.05
    assert masked.amax().item() == pytest.approx(5)


@pytest.mark.parametrize("uniform", [False, True])
def test_seeds_and_batches(uniform):
    model = prepare(random_family("resnet"))
    images, targets, seeds = smooth_images(3), torch.tensor([1, 2, 3]), (7, 8, 7)
    torch.manual_seed(0)
    maps = perturbation.rise_maps(model, images, targets, seeds, 70, uniform=uniform)
    torch.manual_seed(1)
    with limited_to(1):
        alone = perturbation.rise_maps(model, images[1:2], targets[1:2], (8,), 70, uniform=uniform)
    assert torch.allclose(alone[0], maps[1], atol=1e-6)
    other = perturbation.rise_maps(model, images[1:2], targets[1:2], (9,), 70, uniform=uniform)
    assert correlation(other, maps[1]) < 0.9


def test_what_is_registered():
    assert [method.get(name).passes for name in VARIANTS] == [(1000, 0), (200, 0), (1000, 0)]
    assert {method.get(name).family for name in VARIANTS} == {"perturbation"}
    images, targets = smooth_images(1, 8), torch.tensor([0])
    for name, count in zip(VARIANTS, (1000, 200, 1000), strict=True):
        model = Counter()
        found = method.get(name).attribute(model, images, targets, seeds=(5,))
        # One pass is there to learn how much memory a sample takes.
        assert model.samples == count + 1
        uniform = name == "rise_uniform"
        wanted = perturbation.rise_maps(Counter(), images, targets, (5,), count, uniform=uniform)
        assert torch.equal(found, wanted)


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.samples = 0

    def forward(self, x):
        self.samples += len(x)
        return x.amax((2, 3))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family):
    model, images = prepare(random_family(family)), smooth_images(2)
    maps = perturbation.rise_maps(model, images, torch.tensor([0, 1]), (1, 2), 20)
    assert method.get("rise").not_applicable(model) is None
    assert maps.shape == (2, 32, 32)
    assert maps.isfinite().all()
    assert (maps >= 0).all()
    assert not maps.requires_grad
