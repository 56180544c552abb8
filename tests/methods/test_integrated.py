"""Integrated and expected gradients: baselines, paths and sums."""

import numpy as np
import pytest
import torch
from captum.attr import IntegratedGradients
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from attrcheck.methods.integrated import BACKGROUND, background, blurred_baseline, integrated
from tests.methods.gradient_world import (
    SEEDS,
    attribute,
    dataset_of,
    each_family,
    error,
    logits,
    subject,
)
from tests.worlds import FAMILIES, smooth_images, without_biases


def test_one_baseline_for_all_images_gives_the_published_map(vectors):
    network, arrays = vectors
    baseline = arrays["ig_uniform_baseline"]
    found = integrated(network, arrays["images"], arrays["targets"], baseline)
    assert error(found, arrays["attr_igu_raw"]) < 1e-5


def uniform(images):
    draws = [torch.rand(images.shape[1:], generator=torch.manual_seed(seed)) for seed in SEEDS]
    return 2 * torch.stack(draws) - 1


BASELINES = {
    "integrated_gradients": torch.zeros_like,
    "integrated_gradients_uniform": uniform,
    "integrated_gradients_blur": blurred_baseline,
}


# Fifty nodes see each kink of a piecewise linear network only roughly; SiLU has none.
@pytest.mark.parametrize(
    ("family", "weights", "tolerance"),
    [("efficientnet", "trained", 2e-3), *((family, "random", 0.05) for family in FAMILIES)],
)
@pytest.mark.parametrize("name", BASELINES)
def test_integrated_gradients_sum_to_the_change(name, family, weights, tolerance):
    model, data, images, targets = subject(family, weights)
    total = attribute(name, model, data, images, targets).sum((1, 2))
    start = logits(model, BASELINES[name](images), targets)
    size = model(images).abs().amax(1)
    change = logits(model, images, targets) - start
    assert ((total - change).abs() / size).max() < tolerance
    assert (change.abs() / size).min() > 2 * tolerance


@pytest.mark.parametrize("name", BASELINES)
def test_integrated_gradients_are_captums(name):
    model, data, images, targets = subject("resnet")
    double = prepare(model).double()
    # In double precision, since rounding may push a node across a kink.
    images, baselines = images.double(), BASELINES[name](images).double()
    wanted = IntegratedGradients(double).attribute(
        images, baselines, targets, n_steps=50, internal_batch_size=50
    )
    assert error(integrated(double, images, targets, baselines), wanted.sum(1)) < 1e-7
    assert error(attribute(name, double, data, images, targets), wanted.sum(1)) < 1e-4


@pytest.mark.parametrize("family", ["resnet", "vgg", "inception", "densenet"])
def test_input_x_gradient_is_integrated_gradients_without_biases(family):
    model, data, images, _ = subject(family)
    bare = without_biases(model)
    targets = bare(images).argmax(1)
    wanted = attribute("integrated_gradients", bare, data, images, targets)
    assert error(attribute("input_x_gradient", bare, data, images, targets), wanted) < 1e-3


@pytest.mark.parametrize(("side", "radius", "sigma"), [(224, 25, 41.0), (32, 4, 41 / 7)])
def test_blur_has_its_true_sigma(side, radius, sigma):
    point = torch.zeros(1, 2, side, side)
    point[0, 1, side // 2, side // 2] = 1
    offsets = np.arange(-radius, radius + 1)
    kernel = np.exp(-(offsets**2) / (2 * sigma**2))
    wanted = np.zeros((side, side))
    place = slice(side // 2 - radius, side // 2 + radius + 1)
    wanted[place, place] = np.outer(kernel, kernel) / kernel.sum() ** 2
    found = blurred_baseline(point)
    np.testing.assert_allclose(found[0, 1], wanted, rtol=1e-4, atol=1e-9)
    assert (found[0, 0] == 0).all()


def test_blur_mirrors_at_the_border():
    flat = torch.full((1, 3, 8, 12), 0.7)
    assert torch.allclose(blurred_baseline(flat), flat)
    ramp = torch.arange(8.0).expand(1, 1, 8, 8)
    # Radius 1, sigma 41 / 28: the corner sees itself once and its neighbour, 1, twice.
    weight = np.exp(-1 / (2 * (41 / 28) ** 2))
    assert torch.allclose(
        blurred_baseline(ramp)[0, 0, 3, 0], torch.tensor(2 * weight / (1 + 2 * weight)).float()
    )


def test_the_blurred_baseline_of_one_colour_is_the_image():
    model, data, images, targets = subject("resnet")
    flat = torch.ones_like(images)
    assert attribute("integrated_gradients_blur", model, data, flat, targets).abs().max() < 1e-4
    assert "one colour" in method.get("integrated_gradients_blur").constant


def test_expected_gradients_of_a_linear_model_are_exact():
    linear = nn.Sequential(nn.Flatten(), nn.Linear(3 * 6 * 6, 4)).requires_grad_(False)
    pictures, images = smooth_images(25, 6), smooth_images(2, 6, seed=3)
    targets = torch.tensor([1, 3])
    weights = linear[1].weight[targets].view(2, 3, 6, 6)
    wanted = (weights * (images - pictures[:BACKGROUND].mean(0))).sum(1)
    for name in ("expected_gradients", "deepshap"):
        model = prepare(linear)
        found = attribute(name, model, dataset_of(pictures), images, targets, (5, 6))
        assert error(found, wanted) < 1e-5


def test_expected_gradients_sum_to_the_change_in_expectation(vectors):
    network, arrays = vectors
    data = dataset_of(smooth_images(BACKGROUND))
    image, target = arrays["images"][:1], arrays["targets"][:1]
    images, targets = image.expand(60, -1, -1, -1), target.expand(60)
    totals = attribute("expected_gradients", network, data, images, targets, range(60)).sum((1, 2))
    pictures = background(data, image)
    start = logits(network, pictures, target.expand(BACKGROUND)).mean()
    change = logits(network, image, target)[0] - start
    assert totals.std() > 0
    assert (totals.mean() - change).abs() < 4 * totals.std() / 60**0.5
    # A draw in every fifth of the way, so that even one map is close.
    assert totals.std() < 0.05 * change.abs()


@each_family
def test_expected_gradients_nearly_sum_to_the_change(family):
    model, data, images, targets = subject(family)
    total = attribute("expected_gradients", model, data, images, targets).sum((1, 2))
    pictures = background(data, images)
    start = torch.stack([logits(model, pictures, t.expand(BACKGROUND)).mean() for t in targets])
    change = logits(model, images, targets) - start
    assert error(total[:, None], change[:, None]) < 0.25


def test_the_background_is_the_same_for_every_selection_of_images():
    pictures = smooth_images(BACKGROUND + 5, 8)
    data = dataset_of(pictures)
    assert torch.allclose(background(data, pictures[:1]), pictures[:BACKGROUND], atol=1e-5)
    few = background(data.head(BACKGROUND + 1), pictures[3:4])
    assert torch.equal(few, background(data, pictures))
    assert background(data.head(4), pictures.double()).dtype == torch.float64
    assert len(background(data.head(4), pictures)) == 4


def test_an_image_that_is_its_own_background_gets_nothing():
    model, _, images, targets = subject("resnet")
    data = dataset_of(images[:1])
    for name in ("deepshap", "expected_gradients"):
        own = background(data, images)
        assert (attribute(name, model, data, own, targets[:1], (1,)) == 0).all()
        assert "only one" in method.get(name).constant
