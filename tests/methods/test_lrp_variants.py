"""The composites of LRP: conservation, identities, and the library that has them."""

import copy
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.methods import _lrp, method
from attrcheck.models._graph import Add
from attrcheck.models._prepare import prepare
from tests.reference_methods import (
    FAMILIES,
    dense,
    plain_gradient,
    random_family,
    smooth_images,
    trained_family,
    without_biases,
)

VARIANTS = ["lrp", "lrp_epsilon", "lrp_gamma"]
RELU = ["resnet", "vgg", "inception", "densenet"]


@cache
def subject(family, weights):
    if weights == "trained":
        network, images, targets = trained_family(family, 4)
    else:
        network, images, targets = random_family(family), smooth_images(4), torch.arange(4)
    return prepare(network), images, targets


def attribute(name, model, images, targets):
    return method.get(name).attribute(model, images, targets)


def error(found, wanted):
    dims = tuple(range(1, wanted.ndim))
    size = wanted.abs().amax(dims) if dims else wanted.abs()
    worst = (found - wanted).abs().amax(dims) if dims else (found - wanted).abs()
    return (worst / size).max().item()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("weights", ["random", "trained"])
@pytest.mark.parametrize("name", ["lrp_epsilon", "lrp_gamma"])
def test_relevance_is_conserved_without_biases(name, family, weights):
    model, images, _ = subject(family, weights)
    bare = without_biases(model)
    logits = bare(images)
    targets = logits.abs().argmax(1)
    assert method.get(name).applies(bare) is None
    maps = attribute(name, bare, images, targets)
    assert maps.shape == (4, 32, 32)
    total = maps.sum((1, 2))
    assert error(total, logits.gather(1, targets[:, None])[:, 0]) < 1e-3


@pytest.mark.parametrize("family", RELU)
@pytest.mark.parametrize("weights", ["random", "trained"])
@pytest.mark.parametrize("biases", [True, False])
def test_epsilon_is_input_x_gradient_on_a_relu_network(family, weights, biases, monkeypatch):
    model, images, targets = subject(family, weights)
    model = (copy.deepcopy(model) if biases else without_biases(model)).double()
    images = images.double()
    wanted = (images * plain_gradient(model, images, targets)).sum(1)
    assert error(attribute("lrp_epsilon", model, images, targets), wanted) < 0.05
    # What is left is the stabiliser's doing.
    monkeypatch.setattr(_lrp, "EPSILON", 1e-13)
    assert error(attribute("lrp_epsilon", model, images, targets), wanted) < 1e-6


def test_epsilon_is_not_input_x_gradient_on_efficientnet():
    model, images, targets = subject("efficientnet", "trained")
    wanted = (images * plain_gradient(model, images, targets)).sum(1)
    assert error(attribute("lrp_epsilon", model, images, targets), wanted) > 0.1


@pytest.mark.parametrize("family", FAMILIES)
def test_the_variants_differ(family):
    maps = [attribute(name, *subject(family, "trained")) for name in VARIANTS]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert error(maps[one], maps[other]) > 0.05


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["lrp_epsilon", "lrp_gamma"])
def test_a_map_does_not_depend_on_the_batch(name, family):
    model, images, targets = subject(family, "trained")
    together = attribute(name, model, images, targets)
    alone = [attribute(name, model, images[i : i + 1], targets[i : i + 1]) for i in range(4)]
    assert error(torch.cat(alone), together) < 2e-3


@pytest.mark.parametrize("weights", ["random", "trained"])
@pytest.mark.parametrize("name", ["lrp_epsilon", "lrp_gamma"])
def test_zennit_agrees_on_a_plain_stack(name, weights):
    import attrcheck.vision  # noqa: F401, I001  # zennit imports torchvision
    from zennit.attribution import Gradient
    from zennit.composites import LayerMapComposite
    from zennit.rules import Epsilon, Gamma, Norm, Pass

    convolution = Epsilon() if name == "lrp_epsilon" else Gamma(0.25)
    kinds = [(nn.ReLU, Pass()), (nn.AdaptiveAvgPool2d, Norm()), (nn.Linear, Epsilon())]
    model, images, targets = subject("vgg", weights)

    def logits_at_targets(output):
        return output * nn.functional.one_hot(targets, output.shape[1])

    composite = LayerMapComposite([*kinds, (nn.Conv2d, convolution)])
    with Gradient(copy.deepcopy(model), composite) as attributor:
        _, relevance = attributor(images.clone(), logits_at_targets)
    assert error(attribute(name, model, images, targets), relevance.detach().sum(1)) < 5e-3


def shared(matrix, bias, x, relevance, factor):
    """Contribution by contribution; those of the output's sign count 1 + factor times."""
    total = np.zeros_like(x)
    for row, shift, amount in zip(matrix, bias, relevance, strict=True):
        contributions = np.append(row * x, shift)
        sign = 1 if contributions.sum() >= 0 else -1
        contributions *= np.where(contributions * sign > 0, 1 + factor, 1)
        total += contributions[:-1] / contributions.sum() * amount
    return total


@pytest.mark.parametrize(
    ("rule", "factor"), [(_lrp.gamma, 0.25), (_lrp.epsilon, 0.0)], ids=["gamma", "epsilon"]
)
@pytest.mark.parametrize(
    "module",
    [
        nn.Conv2d(2, 3, 3, padding=1),
        nn.Conv2d(2, 4, 3, 2, groups=2, bias=False),
        nn.Conv2d(2, 3, 2, dilation=2),
    ],
)
def test_the_rules_by_contribution(rule, factor, module):
    torch.manual_seed(0)
    module.requires_grad_(False)
    nn.init.normal_(module.weight)
    x = torch.randn(1, 2, 5, 5)
    leaf = x.clone().requires_grad_()
    y = rule(module, leaf)
    assert torch.equal(y, module(x))
    upstream = torch.randn(y.shape)
    (found,) = torch.autograd.grad(y, leaf, upstream)
    shift = module(torch.zeros_like(x))
    matrix = dense(lambda t: module(t) - shift, (2, 5, 5))
    values = (t.flatten().double().numpy() for t in (shift, x, upstream))
    np.testing.assert_allclose(
        found.flatten(), shared(matrix, *values, factor), rtol=2e-3, atol=2e-4
    )


def test_epsilon_of_a_norm_and_of_a_sum_by_hand():
    norm = nn.BatchNorm2d(1).eval()
    norm.running_mean.fill_(1)
    norm.running_var.fill_(4 - norm.eps)
    norm.weight.data.fill_(6)
    norm.bias.data.fill_(1)
    # y = 3 (x - 1) + 1 = 3 x - 2: of 4 at x = 2, the input's part is 6.
    x = torch.full((1, 1, 1, 1), 2.0, requires_grad=True)
    (found,) = torch.autograd.grad(_lrp.epsilon(norm, x), x, torch.full((1, 1, 1, 1), 8.0))
    assert found.item() == pytest.approx(12, rel=1e-4)
    a, b = (torch.tensor([t], requires_grad=True) for t in (3.0, -1.0))
    to_a, to_b = torch.autograd.grad(_lrp.epsilon_add(Add(), a, b), (a, b), torch.tensor([4.0]))
    assert to_a.item() == pytest.approx(6, rel=1e-4)
    assert to_b.item() == pytest.approx(-2, rel=1e-4)


def test_what_is_registered():
    for name in (*VARIANTS, "guided_backprop", "deconvolution"):
        spec = method.get(name)
        assert spec.family == "propagation"
        assert spec.reference
    assert [method.get(name).passes for name in VARIANTS] == [(2, 2), (1, 1), (2, 2)]
