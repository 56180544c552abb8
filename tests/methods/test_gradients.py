"""Gradients: reference maps, oracles, and what a map may depend on."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method
from attrcheck.methods.integrated import BACKGROUND
from attrcheck.tensors.batching import limited_to
from tests.methods.gradient_world import SEEDS, attribute, dataset_of, each_family, error, subject
from tests.worlds import smooth_images

SIGNED = [
    *("gradient", "input_x_gradient", "integrated_gradients", "integrated_gradients_uniform"),
    *("integrated_gradients_blur", "expected_gradients", "deeplift", "deepshap"),
]


ABSOLUTE = {
    "saliency": "gradient",
    "input_x_gradient_abs": "input_x_gradient",
    "integrated_gradients_abs": "integrated_gradients",
    "integrated_gradients_uniform_abs": "integrated_gradients_uniform",
}


each_method = pytest.mark.parametrize("name", [*SIGNED, *ABSOLUTE])


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("gradient", "grad_raw"),
        ("saliency", "grad_abs"),
        ("input_x_gradient", "ixg_raw"),
        ("input_x_gradient_abs", "ixg_abs"),
        ("integrated_gradients", "ig_raw"),
        ("integrated_gradients_abs", "ig_abs"),
    ],
)
def test_maps_are_the_published_ones(name, published, vectors):
    network, arrays = vectors
    found = method.get(name).attribute(network, arrays["images"], arrays["targets"])
    assert error(found, arrays[f"attr_{published}"]) < 1e-5


@pytest.mark.parametrize(("name", "signed"), ABSOLUTE.items())
def test_the_sign_is_dropped_after_channels_are_summed(name, signed):
    found, wanted = attribute(name, *subject("resnet")), attribute(signed, *subject("resnet"))
    assert error(found, wanted.abs()) < 1e-6
    assert found.min() >= 0
    assert wanted.min() < 0


@each_method
def test_a_map_depends_on_its_own_image_and_seed_only(name, vectors):
    model, arrays = prepare(vectors[0]), vectors[1]
    data, images, targets = (
        dataset_of(smooth_images(BACKGROUND)),
        arrays["images"],
        arrays["targets"],
    )
    images, targets = images[:3], targets[:3]
    together = attribute(name, model, data, images, targets)
    order = [2, 0]
    torch.manual_seed(99)
    apart = attribute(name, model, data, images[order], targets[order], [SEEDS[2], SEEDS[0]])
    assert error(apart, together[order]) < 1e-5
    with limited_to(1):
        assert error(attribute(name, model, data, images, targets), together) < 1e-5
    others = attribute(name, model, data, images, targets, seeds=(21, 22, 23))
    seeded = "uniform" in name or "expected" in name
    assert (error(others, together) > 1e-3) == seeded


@each_family
@pytest.mark.parametrize("name", ["deepshap", "gradient", "expected_gradients"])
def test_a_map_does_not_depend_on_the_batch(name, family):
    model, data, images, targets = subject(family)
    # In double precision, since rounding may push a place on the way across a kink.
    model, images = prepare(model).double(), images[:2].double()
    together = attribute(name, model, data, images, targets[:2], SEEDS[:2])
    alone = attribute(name, model, data, images[1:], targets[1:2], SEEDS[1:2])
    assert error(alone, together[1:]) < 1e-7


@each_family
@pytest.mark.parametrize("name", SIGNED)
def test_all_is_left_as_it_was(name, family):
    model, data, images, targets = subject(family)
    images, targets = images[:1].clone(), targets[:1]
    kept, before = images.clone(), Snapshot.of(model)
    spec = method.get(name)
    assert spec.not_applicable(model) is None
    assert spec.family == "gradient"
    assert spec.reference
    with torch.no_grad():
        maps = attribute(name, model, data, images, targets, SEEDS[:1])
        assert not torch.is_grad_enabled()
    assert before.change(model) is None
    assert torch.equal(images, kept)
    assert not images.requires_grad
    assert images.grad is None
    assert not maps.requires_grad
    assert maps.isfinite().all()
    assert maps.shape == (1, 32, 32)
    assert (maps.amax((1, 2)) > maps.amin((1, 2))).all()


class Branches(nn.Module):
    def forward(self, x):
        return x.square().mean((2, 3)) if x.sum() > 1e9 else x.amax((2, 3))


@each_method
def test_what_cannot_be_traced_has_gradients_all_the_same(name):
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    images = smooth_images(3, 8)
    if name in ("deeplift", "deepshap"):
        assert "could not be traced" in method.get(name).not_applicable(model)
        return
    assert method.get(name).not_applicable(model) is None
    maps = attribute(name, model, dataset_of(smooth_images(4, 8)), images, torch.tensor([0, 1, 2]))
    assert maps.shape == (3, 8, 8)


def test_passes_are_those_that_are_made(monkeypatch):
    images = smooth_images(1, 8)
    linear = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
    model = prepare(linear)
    data = dataset_of(smooth_images(BACKGROUND + 1, 8))
    attribute("integrated_gradients", model, data, images, torch.tensor([0]), (1,))
    rows = []
    forward = F.linear
    monkeypatch.setattr(F, "linear", lambda x, *rest: rows.append(len(x)) or forward(x, *rest))
    for name in [*SIGNED, *ABSOLUTE]:
        rows.clear()
        attribute(name, model, data, images, torch.tensor([0]), (1,))
        assert sum(rows) == method.get(name).passes[0], name
