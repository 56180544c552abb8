"""Blur IG and guided IG: against plain loops over one image, in the words of the papers."""

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods import method, paths
from attrcheck.methods.paths import advance, blurring
from tests.methods.gradient_world import error
from tests.reference import plain_gradient
from tests.worlds import smooth_images

SIDE = 10


def smooth_network(seed=0):
    """Without kinks, so that sums along a path converge."""
    torch.manual_seed(seed)
    layers = (nn.Conv2d(3, 6, 3), nn.Softplus(), nn.Conv2d(6, 4, 3), nn.Tanh(), nn.Flatten())
    network = nn.Sequential(*layers, nn.Linear(4 * (SIDE - 4) ** 2, 3))
    return prepare(network.double().requires_grad_(False))


@pytest.fixture(scope="module")
def scene():
    return smooth_network(), smooth_images(2, SIDE).double(), torch.tensor([2, 0])


def attribute(name, model, images, targets):
    return method.get(name).attribute(model, images, targets)


def slope(model, image, target):
    return plain_gradient(model, torch.as_tensor(image)[None], target[None])[0].numpy()


@pytest.mark.parametrize("sigma", [0.0, 0.1, 0.4, 1.0, 2.3, 6.0])
def test_a_blur_is_scipys_with_zeros_beyond_the_border(sigma):
    image = np.random.default_rng(0).normal(size=(12, 9))
    wanted = ndimage.gaussian_filter(image, sigma, mode="constant") if sigma else image
    down, right = (blurring(side, (sigma,))[0].double().numpy() for side in image.shape)
    np.testing.assert_allclose(down @ image @ right.T, wanted, atol=1e-12)


def test_the_strongest_blur_scales_with_the_image():
    assert paths._sigmas(299)[:2] == (50.0, 49.0)
    assert paths._sigmas(32)[0] == pytest.approx(50 * 32 / 299)
    assert paths._sigmas(32)[-1] == 0


def test_blur_ig_of_a_linear_model_is_what_the_blur_took():
    linear = nn.Sequential(nn.Flatten(), nn.Linear(3 * SIDE * SIDE, 3)).double()
    images, targets = smooth_images(2, SIDE).double(), torch.tensor([2, 0])
    blur = blurring(SIDE, (50 * SIDE / 299,))[0]
    weights = linear[1].weight[targets].view(images.shape)
    wanted = (weights * (images - blur @ images @ blur.mT)).sum(1).detach()
    assert error(attribute("blur_ig", prepare(linear), images, targets), wanted) < 1e-10


def published_blur_ig(model, image, target, most, steps, tiny=1e-4):
    """- sum over sigma of df/dx at the blurred image * d(blurred image) / d(sigma)."""

    def blurred(sigma):
        return ndimage.gaussian_filter(image, (0, sigma, sigma), mode="constant")

    total = np.zeros_like(image)
    for step in range(steps):
        sigma = most * (step + 0.5) / steps
        change = (blurred(sigma + tiny) - blurred(sigma - tiny)) / (2 * tiny)
        total -= slope(model, blurred(sigma), target) * change * most / steps
    return total.sum(0)


def test_blur_ig_is_the_published_integral_and_sums_to_the_change(scene):
    model, images, targets = scene
    # A finite difference needs the same taps at both of its ends: one range of sigma has them.
    most = 50 * SIDE / 299
    found = attribute("blur_ig", model, images, targets)
    wanted = published_blur_ig(model, images[0].numpy(), targets[0], most, 600)
    assert error(found[:1], torch.from_numpy(wanted)[None]) < 0.02
    blur = blurring(SIDE, (most,))[0]
    rows = torch.arange(2)
    change = (model(images) - model(blur @ images @ blur.mT))[rows, targets]
    assert torch.allclose(found.sum((1, 2)), change, rtol=1e-3)


def published_guided_ig(model, image, target, steps, fraction, apart):
    """One value of one image after the other, from zero."""
    image, x = image.ravel(), np.zeros(image.size)
    total = np.zeros_like(x)
    for step in range(1, steps + 1):
        gradient = slope(model, x.reshape(3, SIDE, SIDE), target).ravel()
        mean, before, sizes = step / steps, x.copy(), np.abs(gradient)
        first, last = max(mean - apart, 0) * image, min(mean + apart, 1) * image
        late = np.abs(x) < np.abs(first)
        x[late] = first[late]
        wanted = np.abs(image).sum() * (1 - mean)
        while (gap := np.abs(image - x).sum() - wanted) > 1e-9:
            sizes[x == last] = np.inf
            bound = np.quantile(sizes, fraction, method="lower")
            some = (sizes <= bound) & np.isfinite(sizes)
            room = np.abs(last - x)[some].sum()
            if gap < room:
                x[some] += gap / room * (last - x)[some]
                break
            x[some] = last[some]
        total += (x - before) * gradient
    return total.reshape(3, SIDE, SIDE).sum(0)


@pytest.mark.parametrize("blind", [False, True])
def test_guided_ig_is_the_published_loop(scene, blind, monkeypatch):
    model, images, targets = scene
    if blind:  # values that are at their end, and slopes of zero that tie
        images = images.clone()
        images[:, :, 2:4, 3:8] = 0
        model = smooth_network(seed=1)
        model.get_submodule("5").weight.view(3, 4, 6, 6)[..., :3] = 0
        model.get_submodule("5").weight.view(3, 4, 6, 6)[..., 5, :] = 0
    monkeypatch.setattr(paths, "STEPS", 20)
    found = attribute("guided_ig", model, images, targets)
    for map_, image, target in zip(found, images, targets, strict=True):
        wanted = published_guided_ig(model, image.numpy(), target, 20, 0.25, 0.02)
        assert error(map_[None], torch.from_numpy(wanted)[None]) < 1e-9


def test_guided_ig_sums_to_the_change(scene):
    model, images, targets = scene
    rows = torch.arange(2)
    change = (model(images) - model(torch.zeros_like(images)))[rows, targets]
    found = attribute("guided_ig", model, images, targets).sum((1, 2))
    assert torch.allclose(found, change, rtol=0.02, atol=0.02 * change.abs().max().item())


@pytest.mark.parametrize(
    ("slopes", "mean", "apart", "wanted"),
    [
        # Four ways of length 1, of which one goes at a time.
        ([4, 1, 3, 2], 0.25, 1, [0, 1, 0, 0]),
        ([4, -1, 3, -2], 0.375, 1, [0, 1, 0, 0.5]),
        ([1, 1, 2, 3], 0.25, 1, [0.5, 0.5, 0, 0]),
        ([4, 1, 3, 2], 0.25, 0.1, [0.15, 0.35, 0.15, 0.35]),
        ([4, 1, 3, 2], 0.25, 0, [0.25] * 4),
        ([4, 1, 3, 2], 1, 0.02, [1] * 4),
    ],
)
def test_the_least_slopes_go_first(slopes, mean, apart, wanted):
    slopes = torch.tensor([slopes], dtype=torch.float64)
    lengths = torch.ones_like(slopes)
    found = advance(torch.zeros_like(slopes), slopes, lengths, mean, apart)
    assert torch.allclose(found, torch.tensor([wanted], dtype=torch.float64))


@pytest.mark.parametrize("name", ["blur_ig", "guided_ig"])
def test_a_map_does_not_depend_on_the_batch(scene, name, monkeypatch):
    monkeypatch.setattr(paths, "STEPS", 10)
    model, images, targets = scene
    together = attribute(name, model, images, targets)
    assert error(attribute(name, model, images[1:], targets[1:]), together[1:]) < 1e-9
