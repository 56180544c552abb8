"""SmoothGrad, its square and VarGrad, over each base: against plain loops, and by hand."""

import inspect

import pytest
import torch
from torch import nn

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method
from attrcheck.methods.noise import (
    IDSDS,
    OURS,
    SOUNDNESS,
    Noise,
    mean,
    mean_square,
    noisy,
    variance,
)
from attrcheck.tensors.batching import limited_to
from tests import worlds
from tests.worlds import FAMILIES, smooth_images

BASES = {"": "gradient", "_ixg": "input_x_gradient", "_ig": "integrated_gradients"}
PLAIN = {
    "smoothgrad": lambda maps: sum(maps) / len(maps),
    "smoothgrad_squared": lambda maps: sum(m**2 for m in maps) / len(maps),
    "vargrad": lambda maps: sum((m - sum(maps) / len(maps)) ** 2 for m in maps) / len(maps),
}
SETTINGS = {
    **{f"{kind}{base}": (kind, base, 16, None) for kind in PLAIN for base in BASES},
    "smoothgrad_ixg_idsds": ("smoothgrad", "_ixg", 4, 1.0),
    "smoothgrad_ig_soundness": ("smoothgrad", "_ig", 20, 0.3),
}
ABSOLUTE = ["smoothgrad_abs", "smoothgrad_ixg_abs", "smoothgrad_ig_abs"]
SEEDS = (3, 4)

each_method = pytest.mark.parametrize("name", [*SETTINGS, *ABSOLUTE])


@pytest.fixture(scope="module")
def small():
    """A small network with a kink and a bend, in double precision, images and targets."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3), nn.Tanh(), nn.Flatten()]
    model = prepare(nn.Sequential(*layers, nn.Linear(64, 3))).double()
    images = smooth_images(2, 8, channels=2).double() * torch.tensor([1, 2])[:, None, None, None]
    return model, images, torch.tensor([2, 0])


def smoothed(name, model, images, targets, seeds=SEEDS):
    return method.get(name).attribute(model, images, targets, seeds=seeds)


def of_base(name, model, images, targets):
    return method.get(BASES[name]).attribute(model, images, targets)


@pytest.mark.parametrize(("name", "setting"), SETTINGS.items())
def test_the_statistic_is_over_maps_of_noisy_copies(name, setting, small):
    kind, base, samples, std = setting
    model, images, targets = small
    # Every copy's noise is known: it follows from the seed and the number of the copy.
    known = Noise(samples, std or 0.15, relative=std is None)
    wanted = []
    for image, target, seed in zip(images, targets, SEEDS, strict=True):
        copies = [image + known.of(image[None], [(seed, copy)])[0] for copy in range(samples)]
        maps = [of_base(base, model, copy[None], target[None])[0] for copy in copies]
        wanted.append(PLAIN[kind](maps))
    found = smoothed(name, model, images, targets)
    assert torch.allclose(found, torch.stack(wanted), rtol=1e-6, atol=1e-12)
    assert found.abs().amax() > 1e-4


@pytest.mark.parametrize("name", ABSOLUTE)
def test_the_sign_is_dropped_after_the_mean(name, small):
    signed = smoothed(name.removesuffix("_abs"), *small)
    assert signed.min() < 0
    assert torch.equal(smoothed(name, *small), signed.abs())


@pytest.mark.parametrize(
    ("base", "family"),
    [
        *((base, family) for base in ("gradient", "input_x_gradient") for family in FAMILIES),
        ("integrated_gradients", "resnet"),
    ],
)
def test_without_noise_it_is_the_base(base, family):
    network, images, targets = worlds.trained_family(family, 2)
    model = prepare(network).double()
    base, images = method.get(base).attribute, images.double()
    maps = base(model, images, targets)
    size = maps.abs().amax()
    silent = Noise(samples=2, std=0.0)
    for statistic, wanted in ((mean, maps), (mean_square, maps**2), (variance, 0 * maps)):
        found = noisy(base, model, images, targets, SEEDS, silent, statistic)
        assert torch.allclose(found / size, wanted / size, atol=1e-7)


def test_noise_has_the_stated_size():
    image = torch.linspace(-1, 3, 3 * 60 * 60).view(3, 60, 60)
    # 0.15 of a range of 4; 10,800 numbers tell a standard deviation within about 0.7%.
    for noise, std in ((OURS, 0.6), (IDSDS, 1.0), (SOUNDNESS, 0.3)):
        drawn = noise.of(image[None], [(7, 2)])[0]
        assert drawn.std().item() == pytest.approx(std, rel=0.03)
        assert abs(drawn.mean().item()) < 0.04 * std
        assert torch.equal(drawn, noise.of(image[None], [(7, 2)])[0])
    copies = [(seed, copy) for seed in (7, 8) for copy in range(3)]
    drawn = OURS.of(image.expand(6, -1, -1, -1), copies)
    correlations = torch.corrcoef(drawn.flatten(1)) - torch.eye(6)
    assert correlations.abs().max() < 0.05
    assert (OURS.samples, IDSDS.samples, SOUNDNESS.samples) == (16, 4, 20)


class HalfSquare(nn.Module):
    """Half the sum of squares, whose gradient is the image: two classes, one the negative."""

    def forward(self, x):
        total = x.square().sum((1, 2, 3)) / 2
        return torch.stack([total, -total], 1)


def test_moments_by_hand():
    images = smooth_images(1, 32, channels=1)
    images = (images - images.min()) / (images.max() - images.min())
    model, targets = HalfSquare(), torch.tensor([0])
    # The gradient of a copy is x + n with variance 0.15^2.
    found = {name: smoothed(name, model, images, targets, (5,))[0] for name in PLAIN}
    assert found["vargrad"].mean().item() == pytest.approx(0.0225 * 15 / 16, rel=0.05)
    assert (found["smoothgrad"] - images[0, 0]).std().item() == pytest.approx(0.15 / 4, rel=0.1)
    together = found["smoothgrad"] ** 2 + found["vargrad"]
    assert torch.allclose(found["smoothgrad_squared"], together, atol=1e-5)


def test_the_gradient_of_a_linear_model_does_not_vary():
    torch.manual_seed(0)
    linear = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 4)).requires_grad_(False)
    images, targets = smooth_images(2, 8), torch.tensor([1, 3])
    assert (smoothed("vargrad", linear, images, targets) == 0).all()
    assert "linear" in method.get("vargrad").constant
    assert (smoothed("vargrad_ixg", linear, images, targets).amin((1, 2)) > 0).all()


@pytest.mark.parametrize("name", ["vargrad", "vargrad_ixg", "vargrad_ig"])
def test_an_image_of_one_value_gets_no_noise(name, small):
    model, images, targets = small
    found = smoothed(name, model, torch.ones_like(images), targets)
    assert found.abs().max() < 1e-20
    assert method.get(name).constant


@each_method
def test_a_map_depends_on_its_own_image_and_seed_only(name, small):
    model, images, targets = small
    together = smoothed(name, model, images, targets)
    torch.manual_seed(99)
    alone = smoothed(name, model, images[1:], targets[1:], SEEDS[1:])
    assert torch.allclose(alone, together[1:], rtol=1e-6, atol=1e-12)
    with limited_to(1):
        assert torch.allclose(smoothed(name, model, images, targets), together, 1e-6, 1e-12)
    others = smoothed(name, model, images, targets, (3, 5))
    assert torch.allclose(others[0], together[0], rtol=1e-6, atol=1e-12)
    assert not torch.allclose(others[1], together[1], rtol=0.01)


def test_all_is_left_as_it_was(small):
    model, images, targets = small
    kept, before = images.clone(), Snapshot.of(model)
    with torch.no_grad():
        maps = smoothed("smoothgrad_ig", model, images, targets)
        assert not torch.is_grad_enabled()
    assert before.change(model) is None
    assert torch.equal(images, kept)
    assert not images.requires_grad
    assert not maps.requires_grad
    assert maps.shape == (2, 8, 8)


class Branches(nn.Module):
    def forward(self, x):
        return x.square().mean((2, 3)) if x.sum() > 1e9 else x.amax((2, 3))


@each_method
def test_metadata_and_models_that_cannot_be_traced(name):
    spec = method.get(name)
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    assert spec.not_applicable(model) is None
    assert spec.family == "gradient"
    assert spec.reference
    samples = SETTINGS[name][2] if name in SETTINGS else 16
    steps = 50 if "_ig" in name else 1
    assert spec.passes == (samples * steps, samples * steps)
    assert "seeds" in inspect.signature(spec.attribute).parameters
    maps = smoothed(name, model, smooth_images(2, 4), torch.tensor([0, 1]))
    assert maps.shape == (2, 4, 4)
    assert maps.isfinite().all()
