"""The composites of LRP: conservation, identities, and the library that has them."""

import copy
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.methods import lrp_rules, method
from tests.reference import dense, plain_gradient
from tests.worlds import FAMILIES, random_family, smooth_images, trained_family, without_biases

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
    assert method.get(name).not_applicable(bare) is None
    maps = attribute(name, bare, images, targets)
    assert maps.shape == (4, 32, 32)
    total = maps.sum((1, 2))
    assert error(total, logits.gather(1, targets[:, None])[:, 0]) < 1e-3


@pytest.mark.parametrize("family", RELU)
@pytest.mark.parametrize("weights", ["random", "trained"])
@pytest.mark.parametrize("biases", [True, False])
def test_epsilon_is_input_x_gradient_on_a_relu_network(family, weights, biases):
    model, images, targets = subject(family, weights)
    model = (copy.deepcopy(model) if biases else without_biases(model)).double()
    images = images.double()
    wanted = (images * plain_gradient(model, images, targets)).sum(1)
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
    import attrcheck.adapters.vision  # noqa: F401, I001  # zennit imports torchvision
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
    ("rule", "factor"),
    [(lrp_rules.gamma, 0.25), (lrp_rules.epsilon, 0.0)],
    ids=["gamma", "epsilon"],
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
    module.reset_parameters()  # biases too: what is made at import is made of any seed
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


class Small(nn.Module):
    """A norm, activations that are no ReLU, a sum and a gate."""

    def __init__(self):
        super().__init__()
        self.stem, self.inner = nn.Conv2d(1, 2, 3), nn.Conv2d(2, 2, 3, padding=1)
        self.norm, self.silu, self.tanh = nn.BatchNorm2d(2), nn.SiLU(), nn.Tanh()
        self.head = nn.Linear(2, 3)

    def forward(self, x):
        low = self.tanh(self.stem(x))
        high = low + self.silu(self.norm(self.inner(low)))
        return self.head((high * high.mean((2, 3), keepdim=True).sigmoid()).mean((2, 3)))


def test_epsilon_is_relevance_shared_out_layer_by_layer():
    """The rule as it is defined, R(x) = x * W^T(R(y) / y), one layer after the other."""

    def back(layer, x, relevance):
        x = x.detach().requires_grad_()
        y = layer(x)
        return x.detach() * torch.autograd.grad(y, x, relevance / y.detach())[0]

    torch.manual_seed(0)
    net = Small().double().eval().requires_grad_(False)
    net.norm.running_mean.normal_()
    images, targets = torch.randn(2, 1, 7, 7).double(), torch.tensor([0, 2])
    found = attribute("lrp_epsilon", prepare(net), images, targets)

    low = net.tanh(net.stem(images))
    deep = net.inner(low)
    branch = net.silu(net.norm(deep))
    high = low + branch
    pooled = high * high.mean((2, 3), keepdim=True).sigmoid()
    logits = net.head(pooled.mean((2, 3)))
    relevance = logits * nn.functional.one_hot(targets, 3)
    relevance = back(net.head, pooled.mean((2, 3)), relevance)
    relevance = back(lambda t: t.mean((2, 3)), pooled, relevance)
    of_low, of_branch = relevance * low / high, relevance * branch / high
    of_low = of_low + back(net.inner, low, back(net.norm, deep, of_branch))
    assert error(found, back(net.stem, images, of_low)[:, 0]) < 1e-3


def test_what_is_registered():
    for name in (*VARIANTS, "guided_backprop", "deconvolution"):
        spec = method.get(name)
        assert spec.family == "propagation"
        assert spec.reference
    assert [method.get(name).passes for name in VARIANTS] == [(2, 2), (1, 1), (2, 2)]
