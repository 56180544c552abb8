"""Superpixels, KernelSHAP and LIME: exact where an exact answer is known."""

from itertools import combinations
from math import comb, exp, factorial, sqrt

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.datasets import dataset
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method, surrogates
from attrcheck.methods.surrogates import game, spread, superpixels
from attrcheck.tensors.batching import limited_to
from tests.worlds import FAMILIES, blank, random_family, smooth_images, trained_family


class Linear(nn.Module):
    def __init__(self, weights):
        super().__init__()
        self.weights = weights

    def forward(self, x):
        return (x * self.weights).sum((1, 2, 3))[:, None] + torch.tensor([0.5, -1.0])


def coalitions_of(players):
    return torch.tensor([[s >> p & 1 for p in range(players)] for s in range(2**players)]).bool()


def exact(values, players):
    """Shapley values by their definition; `values` are in the order of coalitions_of."""
    found = []
    for player in range(players):
        others = [p for p in range(players) if p != player]
        total = 0.0
        for size in range(players):
            for group in combinations(others, size):
                code = sum(1 << p for p in group)
                share = factorial(size) * factorial(players - 1 - size) / factorial(players)
                total += share * (values[code | 1 << player] - values[code])
        found.append(total)
    return torch.tensor(found, dtype=torch.float64)


def kernel(coalitions):
    players = coalitions.shape[1]
    sizes = [int(s) for s in coalitions.sum(1)]
    weights = [(players - 1) / (comb(players, s) * s * (players - s)) for s in sizes]
    return torch.tensor(weights, dtype=torch.float64)


def by_regression(values, players):
    inner = slice(1, 2**players - 1)
    coalitions = coalitions_of(players)[inner]
    gains = values - values[0]
    return surrogates.shapley_values(coalitions, kernel(coalitions), gains[inner], gains[-1])


def test_shapley_values_of_a_glove_game_by_hand():
    # Players 0 and 1 have a left glove each, player 2 the right one: a pair is worth 6, so each
    # left glove gets 1 and the right one 4. A bonus of 3 for all three together adds 1 to each.
    values = torch.tensor([0, 0, 0, 0, 0, 6, 6, 9], dtype=torch.float64)
    assert exact(values, 3).tolist() == pytest.approx([2, 2, 5])
    assert by_regression(values, 3).tolist() == pytest.approx([2, 2, 5])


@pytest.mark.parametrize("players", [2, 3, 5, 7])
def test_all_coalitions_give_exact_shapley_values(players):
    values = torch.randn(2**players, generator=torch.Generator().manual_seed(0)).double()
    assert torch.allclose(by_regression(values, players), exact(values, players), atol=1e-9)


def test_sampled_coalitions_converge_to_shapley_values():
    players = 6
    table = torch.randn(2**players, generator=torch.Generator().manual_seed(1)).double()
    wanted, bits = exact(table, players), 2 ** torch.arange(players)
    errors = []
    for samples in (64, 1024, 16384):
        drawn = surrogates.draw_coalitions(players, samples, torch.Generator().manual_seed(0))
        gains = table[(drawn * bits).sum(1)] - table[0]
        found = surrogates.shapley_values(
            drawn, torch.ones(samples).double(), gains, table[-1] - table[0]
        )
        errors.append((found - wanted).norm().item())
    assert errors[1] < errors[0] / 2
    assert errors[2] < errors[1] / 2
    assert errors[2] < 0.1


def test_coalitions_are_drawn_as_the_kernel_weighs_them():
    drawn = surrogates.draw_coalitions(5, 40000, torch.Generator().manual_seed(0))
    assert torch.equal(drawn[1::2], ~drawn[::2])
    # 1 / (s (5 - s)) is 1/4, 1/6, 1/6, 1/4 for sizes one to four.
    shares = drawn.sum(1).bincount() / 40000
    assert shares.tolist() == pytest.approx([0, 0.3, 0.2, 0.2, 0.3], abs=0.01)
    assert drawn.float().mean(0).tolist() == pytest.approx([0.5] * 5, abs=1e-6)
    alone = drawn[drawn.sum(1) == 1].float().mean(0)
    assert alone.tolist() == pytest.approx([0.2] * 5, abs=0.02)
    assert surrogates.draw_coalitions(5, 7, torch.Generator().manual_seed(0)).shape == (7, 5)


def contributions(images, weights, labels):
    """The exact answer of a linear model: what each superpixel adds, spread over its pixels."""
    parts = (images * weights).sum(1)
    maps = torch.zeros_like(parts)
    for image, (part, label) in enumerate(zip(parts, labels, strict=True)):
        for region in label.unique():
            maps[image][label == region] = part[label == region].mean()
    return maps


def maps_of(method, model, images, targets, seeds, data, samples):
    return method(model, images, targets, seeds=seeds, dataset=data, samples=samples)


def linear_case():
    images, weights = smooth_images(2, 16), smooth_images(1, 16, seed=8)[0]
    labels = [superpixels(image) for image in blank().denormalise(images)]
    return Linear(weights), images, torch.tensor([0, 1]), contributions(images, weights, labels)


def test_kernel_shap_is_exact_on_a_linear_model():
    model, images, targets, wanted = linear_case()
    found = maps_of(surrogates.kernel_shap, model, images, targets, (1, 2), blank(), 120)
    assert torch.allclose(found, wanted, atol=1e-5)
    few = maps_of(surrogates.kernel_shap, model, images, targets, (1, 2), blank(), 20)
    assert not torch.allclose(few, wanted, atol=1e-2)
    assert torch.allclose(few.sum((1, 2)), wanted.sum((1, 2)), atol=1e-4)


def test_lime_converges_to_the_exact_answer_on_a_linear_model():
    model, images, targets, wanted = linear_case()
    errors = []
    for samples in (64, 640, 6400):
        found = maps_of(surrogates.lime, model, images, targets, (1, 2), blank(), samples)
        errors.append(((found - wanted).norm() / wanted.norm()).item())
    # The ridge shrinks coefficients by its share of all weights.
    assert errors[1] < errors[0] / 5
    assert errors[2] < errors[1] / 5
    assert errors[2] < 0.003


def test_lime_is_the_weighted_ridge_regression():
    from sklearn.linear_model import Ridge

    generator = torch.Generator().manual_seed(0)
    present = torch.rand(40, 6, generator=generator) < 0.5
    values = torch.randn(40, generator=generator).double()
    weights = []
    for row in present:
        distance = 1 - sqrt(int(row.sum()) / 6)
        weights.append(sqrt(exp(-(distance**2) / 0.25**2)))
    wanted = Ridge(alpha=1.0).fit(present.double().numpy(), values.numpy(), np.array(weights)).coef_
    assert surrogates.local_coefficients(present, values).tolist() == pytest.approx(
        wanted, rel=1e-6
    )


def test_the_game_blanks_what_is_absent():
    labels = torch.tensor([[0, 0, 1], [2, 2, 1]])
    image = torch.tensor([[[1.0, 2, 3], [4, 5, 6]]])
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 2, bias=False))
    nn.init.ones_(model[1].weight)
    found = game(model, image, torch.tensor(1), labels, coalitions_of(3))
    assert found.tolist() == [0, 3, 9, 12, 9, 12, 18, 21]
    assert found.dtype is torch.float64
    shares = spread(torch.tensor([4.0, 2, -6]), labels)
    assert torch.equal(shares, torch.tensor([[2.0, 2, 1], [-3, -3, 1]]))


def test_superpixels_of_a_flat_image_are_a_grid():
    labels = superpixels(torch.full((3, 28, 21), 0.5))
    rows, columns = torch.arange(28) // 4, torch.arange(21) // 3
    assert torch.equal(labels, rows[:, None] * 7 + columns)
    assert superpixels(torch.zeros(1, 3, 4)).flatten().tolist() == list(range(12))


def test_superpixels_keep_to_edges():
    image = torch.zeros(3, 32, 32)
    image[:, :, 15:] = 1
    labels = superpixels(image)
    left, right = set(labels[:, :15].flatten().tolist()), set(labels[:, 15:].flatten().tolist())
    assert not left & right
    assert left | right == set(range(int(labels.max()) + 1))


def test_superpixels_see_the_denormalised_image():
    data = dataset.get("shapes").load().head(3)
    again = data.denormalise(data.normalise(data.images))
    assert torch.allclose(again, data.images, atol=1e-6)
    assert all(30 < int(superpixels(image).max()) < 49 for image in data.images)


@pytest.mark.parametrize("method", [surrogates.kernel_shap, surrogates.lime])
def test_seeds_and_batches(method):
    model, data = prepare(random_family("resnet")), blank()
    images, targets = smooth_images(3), torch.tensor([1, 2, 3])
    torch.manual_seed(0)
    together = maps_of(method, model, images, targets, (7, 8, 7), data, 60)
    torch.manual_seed(1)
    with limited_to(2_000_000):
        alone = maps_of(method, model, images[1:2], targets[1:2], (8,), data, 60)
    size = together[1].abs().max()
    assert (alone[0] - together[1]).abs().max() < 1e-3 * size
    other = maps_of(method, model, images[1:2], targets[1:2], (9,), data, 60)
    assert (other[0] - together[1]).abs().max() > 1e-2 * size


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family):
    network, images, labels = trained_family(family, 2)
    model, data = prepare(network), dataset.get("shapes").load()
    maps = maps_of(surrogates.kernel_shap, model, images, labels, (1, 2), data, 100)
    with torch.no_grad():
        change = (model(images) - model(torch.zeros_like(images))).gather(1, labels[:, None])[:, 0]
    assert torch.allclose(maps.sum((1, 2)), change, rtol=1e-3)
    near = maps_of(surrogates.lime, model, images, labels, (1, 2), data, 100)
    for found in (maps, near):
        assert found.shape == (2, 32, 32)
        assert found.dtype is torch.float32
        assert not found.requires_grad


@pytest.mark.parametrize(("name", "passes"), [("kernel_shap", 258), ("lime", 256)])
def test_what_is_registered(name, passes):
    class Counter(nn.Module):
        samples = 0

        def forward(self, x):
            self.samples += len(x)
            return x.amax((2, 3))

    spec, model = method.get(name), Counter()
    maps = spec.attribute(model, smooth_images(1), torch.tensor([0]), seeds=(1,), dataset=blank())
    assert maps.shape == (1, 32, 32)
    # One pass is there to learn how much memory a sample takes.
    assert spec.passes == (model.samples - 1, 0) == (passes, 0)


@pytest.mark.parametrize("name", ["lime", "kernel_shap"])
def test_images_in_double_precision(name):
    network, images = random_family("vgg"), smooth_images(1)
    targets = torch.tensor([1])
    settings = {"dataset": dataset.get("shapes").load().head(4), "seeds": (3,)}
    run = method.get(name).attribute
    single = run(prepare(network), images, targets, **settings)
    double = run(prepare(network).double(), images.double(), targets, **settings)
    torch.testing.assert_close(double.float(), single.float(), rtol=1e-2, atol=1e-3)
