"""Every method on every full-size architecture, at 64 pixels and with random weights.

Slow methods take fewer samples here; what they compute is proved on the embedded families.
"""

import inspect
from functools import lru_cache

import pytest
import torch
from torch import nn

from attrcheck.contracts import Dataset
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import prepare
from attrcheck.methods import (
    bottleneck,
    extremal_perturbation,
    integrated,
    method,
    paths,
    perturbation,
    smooth,
    surrogates,
)
from tests import worlds
from tests.reference import change, of, plain_gradient
from tests.worlds import smooth_images, without_biases

pytestmark = pytest.mark.slow

CONVOLUTIONAL = [
    *("resnet18", "resnet50", "vgg19", "efficientnet_b2", "densenet121"),
    "inception_v4",
]
ARCHITECTURES = [*CONVOLUTIONAL, "vit_b_16"]
BUILT_IN = list(method.select("*"))
COUNT, CLASSES = 2, 10
SIDES = {"inception_v4": 75}
"""The least that it takes; all others get 64 pixels."""

FOR_ATTENTION = {"attention_rollout", "chefer", "chefer_lrp", "attn_lrp", "libragrad"}
FOR_OTHERS = {"bagnet_evidence", "bcos_weights"}
FOR_CONVOLUTIONS = {
    *("lrp", "lrp_epsilon", "lrp_gamma"),
    *("iba", "input_iba", "fullgrad"),
}


def build(name):
    from attrcheck.adapters.vision import timm, torchvision

    torch.manual_seed(0)
    if name == "inception_v4":
        return timm.create_model(name, pretrained=False, num_classes=CLASSES)
    if name == "vit_b_16":
        network = torchvision.models.get_model(name, image_size=64, num_classes=CLASSES)
        nn.init.normal_(network.heads.head.weight)
        return network
    return torchvision.models.get_model(name, weights=None, num_classes=CLASSES)


@lru_cache(maxsize=1)  # one at a time: they are large
def subject(name):
    """A prepared model, images, and for each the class that it speaks of most."""
    side = SIDES.get(name, 64)
    model = prepare(worlds.enliven(build(name), side))
    images = smooth_images(COUNT, side)
    return model, images, change(model, images).abs().argmax(1)


def error(found, wanted):
    return ((found - wanted).abs() / wanted.abs()).max().item()


def data_like(images):
    """A dataset of noise: of mean zero and variance one, as normalised images are."""
    known = smooth_images(12, images.shape[2], seed=7)
    labels, ids = torch.zeros(12, dtype=torch.int64), tuple(map(str, range(12)))
    return Dataset("noise", known, labels, CLASSES, (0.0,) * 3, (1.0,) * 3, ids)


def attribute(name, model, images, targets):
    offers = {"seeds": (5, 6), "dataset": data_like(images)}
    found = method.get(name).attribute
    asked = inspect.signature(found).parameters
    return found(model, images, targets, **{k: v for k, v in offers.items() if k in asked})


@pytest.fixture
def hasty(monkeypatch):
    """Fewer samples and steps."""
    monkeypatch.setattr(integrated, "STEPS", 3)
    monkeypatch.setattr(integrated, "PLACES", 1)
    monkeypatch.setattr(paths, "STEPS", 3)
    monkeypatch.setattr(paths, "BLURS", 3)
    for noise in (smooth.OURS, smooth.IDSDS, smooth.SOUNDNESS):
        monkeypatch.setitem(noise.__dict__, "samples", 2)
    for name in ("MASKS", "FEW_MASKS"):
        monkeypatch.setattr(perturbation, name, 10)
    for name in ("WINDOW", "STRIDE"):
        monkeypatch.setattr(perturbation, name, 4)
    monkeypatch.setattr(surrogates, "SAMPLES", 60)
    monkeypatch.setattr(extremal_perturbation, "STEPS", 2)
    monkeypatch.setattr(bottleneck, "STEPS", 1)
    monkeypatch.setattr(bottleneck, "SAMPLES", 2)


# Nearest to the function, so that it changes last.
each_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)
each_convolutional = pytest.mark.parametrize("architecture", CONVOLUTIONAL)


@pytest.mark.parametrize("name", BUILT_IN)
@each_architecture
def test_every_method(name, architecture, hasty):
    model, images, targets = subject(architecture)
    if name in ("scorecam", "ablation_cam"):  # as many passes as there are channels
        images, targets = images[:1], targets[:1]
    spec = method.get(name)
    other = FOR_CONVOLUTIONS if architecture == "vit_b_16" else FOR_ATTENTION
    if name in other | FOR_OTHERS:
        assert spec.not_applicable(model)
        return
    assert spec.not_applicable(model) is None
    kept, before = images.clone(), Snapshot.of(model)
    maps = attribute(name, model, images, targets)
    assert maps.shape[0] == len(images)
    assert maps.shape[-2:] == images.shape[2:]
    assert maps.isfinite().all()
    assert not maps.requires_grad
    assert before.change(model) is None
    assert torch.equal(images, kept)
    flat = maps.flatten(1)
    assert spec.constant or (flat.amax(1) > flat.amin(1)).all()


@each_architecture
def test_deeplift_and_deepshap_are_complete(architecture):
    model, images, targets = subject(architecture)
    total = attribute("deeplift", model, images, targets).sum((1, 2))
    assert error(total, of(change(model, images), targets)) < 1e-3
    baselines = data_like(images).images[:10]
    with torch.no_grad():
        wanted = of(model(images) - model(baselines).mean(0), targets)
    total = attribute("deepshap", model, images, targets).sum((1, 2))
    assert error(total, wanted) < 1e-3


@pytest.mark.parametrize("architecture", ["vgg19", "efficientnet_b2", "vit_b_16"])
def test_integrated_gradients_are_complete(architecture):
    model, images, targets = subject(architecture)
    total = attribute("integrated_gradients", model, images, targets).sum((1, 2))
    assert error(total, of(change(model, images), targets)) < 1e-2


@pytest.mark.parametrize("architecture", [a for a in CONVOLUTIONAL if a != "efficientnet_b2"])
def test_without_biases_a_relu_network_is_linear_along_the_path(architecture):
    """Along it fifty nodes are exact; with biases deep random ReLUs have more kinks than that."""
    model, images, _ = subject(architecture)
    bare = without_biases(model)
    targets = bare(images).abs().argmax(1)
    wanted = attribute("input_x_gradient", bare, images, targets)
    for name in ("integrated_gradients", "deeplift"):
        found = attribute(name, bare, images, targets)
        assert error(found.sum((1, 2)), of(bare(images), targets)) < 1e-3
        assert (found - wanted).abs().max() < 1e-2 * wanted.abs().max()


@pytest.mark.parametrize("name", ["lrp", "lrp_epsilon", "lrp_gamma"])
@each_convolutional
def test_relevance_is_conserved_without_biases(name, architecture):
    model, images, _ = subject(architecture)
    bare = without_biases(model)
    targets = bare(images).abs().argmax(1)
    total = attribute(name, bare, images, targets).sum((1, 2))
    assert error(total, of(bare(images), targets)) < 1e-2


@pytest.mark.parametrize("name", ["guided_backprop", "deconvolution"])
@each_architecture
def test_rectifying_methods_are_not_the_gradient(name, architecture):
    model, images, targets = subject(architecture)
    gradient = plain_gradient(model, images, targets).sum(1)
    found = attribute(name, model, images, targets)
    assert torch.corrcoef(torch.stack([found.flatten(), gradient.flatten()]))[0, 1] < 0.7
