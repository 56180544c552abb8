"""Axioms are kept by those that claim them, and broken claims are named."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attrcheck.checks import check as checks
from attrcheck.checks.axioms import AXIOMS, axioms
from attrcheck.contracts import Method
from attrcheck.engine.checking import examine
from attrcheck.graph.probes import half_blind, mirrored, rewritten, without_biases
from attrcheck.methods import method as methods
from tests.worlds import load

PAIR = ("digits", "resnet", 8, "cpu")
SUMS = ("completeness", "completeness_in_mean", "conservation", "conservation_without_biases")


def claimed(function, *names, tolerance=1e-3):
    return Method(function.__name__, function, axioms=dict.fromkeys(names, tolerance))


def product(model, images, targets):
    """Input x gradient: exact on a linear network without bias."""
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return (inputs.grad * images).sum(1)


def brightness(model, images, targets):
    return images.sum(1)


def slanted(model, images, targets):
    """Prefers the right half, where the model tells nothing apart."""
    return product(model, images, targets) * torch.arange(images.shape[3])


def by_layers(model, images, targets):
    """Depends on how many parts the model is made of."""
    return product(model, images, targets) ** len(list(model.parameters()))


def bare_linear(pair):
    """The pair with a linear network without bias, whose weights are mirror images."""
    torch.manual_seed(0)
    linear = nn.Linear(pair.images[0].numel(), pair.dataset.classes, bias=False)
    network = nn.Sequential(nn.Flatten(), linear).requires_grad_(False)
    return pair.changed({"network": network.eval(), "original": network})


def test_the_half_blind_network_does_not_see_the_left():
    pair = load(*PAIR)
    network, images = half_blind(pair.dataset), pair.images.clone()
    before = network(images)
    images[..., :16] = 7
    assert torch.equal(network(images), before)
    images[..., 16] = 7
    assert not torch.allclose(network(images), before)


def test_the_mirrored_network_takes_no_side():
    pair = load(*PAIR)
    network = mirrored(pair.dataset)
    logits, turned = network(pair.images), network(pair.images.flip(3))
    assert torch.allclose(logits, turned, atol=1e-5)
    assert not torch.allclose(logits, network(pair.images.flip(2)), atol=1e-2)


def test_the_rewritten_network_computes_the_same():
    pair = load(*PAIR)
    one, other = rewritten(pair.dataset)
    assert len(list(other.parameters())) > len(list(one.parameters()))
    assert torch.allclose(one(pair.images), other(pair.images), atol=1e-6)


def test_without_biases_black_is_nothing():
    network = load(*PAIR).network
    zero = torch.zeros(1, 1, 32, 32)
    assert network(zero).abs().max() > 0.1
    assert without_biases(network)(zero).abs().max() == 0


@pytest.mark.parametrize("name", SUMS)
def test_sums_on_a_linear_network(name):
    pair = bare_linear(load(*PAIR))
    exact, wrong = (axioms(claimed(function, name), pair) for function in (product, brightness))
    # From the mean of other images, x * gradient misses what they have.
    assert exact.passed is (name != "completeness_in_mean")
    assert wrong.passed is False
    assert f"{name} is missed by" in wrong.reason
    assert wrong.figures[name] <= wrong.figures[f"{name}_at_worst"]


def test_a_baseline_that_is_the_mean_of_images():
    pair = bare_linear(load(*PAIR))

    def from_mean(model, images, targets, *, dataset):
        mean = dataset.normalise(dataset.images[:10]).mean(0)
        weights = model[1].weight[targets].view_as(images)
        return (weights * (images - mean)).sum(1)

    assert axioms(claimed(from_mean, "completeness_in_mean"), pair).passed
    assert not axioms(claimed(from_mean, "completeness"), pair).passed


@pytest.mark.parametrize(
    ("name", "culprit"),
    [
        ("dummy_feature", brightness),
        ("symmetry", slanted),
        ("implementation_invariance", by_layers),
        ("scaling", brightness),
    ],
)
def test_each_axiom_of_pixels_has_its_culprit(name, culprit):
    pair = load(*PAIR)
    assert axioms(claimed(product, name), pair).passed
    broken = axioms(claimed(culprit, name), pair)
    assert broken.passed is False
    assert broken.reason.startswith(f"{name} is missed by")


def test_guided_backprop_depends_on_how_the_network_is_written():
    guided = replace(methods.get("guided_backprop"), axioms={"implementation_invariance": 1e-3})
    assert axioms(guided, load(*PAIR)).figures["implementation_invariance_at_worst"] > 0.5


def test_the_tolerance_is_the_one_claimed():
    pair = load(*PAIR)
    rough = replace(methods.get("integrated_gradients"), axioms={"completeness": 1e-6})
    verdict = axioms(rough, pair)
    assert not verdict.passed
    assert 1e-6 < verdict.figures["completeness"] < 0.05
    assert axioms(methods.get("integrated_gradients"), pair).passed


def test_a_claim_that_no_check_knows_is_an_error_with_a_hint():
    result = examine(checks.get("axioms"), claimed(product, "beauty"), load(*PAIR))
    assert result.status == "failed"
    assert "'product' claims beauty, which no check knows; there are: completeness" in (
        result.reason
    )


def test_without_a_claim_there_is_nothing_to_keep():
    result = examine(checks.get("axioms"), Method("product", product), load(*PAIR))
    assert (result.status, result.reason) == ("not_applicable", "it claims none")


CLAIMANTS = [
    *("attn_lrp", "bagnet_evidence", "bcos_weights", "blur_ig", "deeplift", "deepshap", "gradient"),
    *("guided_ig", "input_x_gradient", "integrated_gradients", "kernel_shap", "libragrad"),
    *("lrp", "lrp_epsilon", "lrp_gamma", "saliency"),
]


def test_who_claims_what_is_known():
    claimants = {name for name in methods if methods.get(name).axioms}
    assert claimants == set(CLAIMANTS)
    claims = {axiom for name in CLAIMANTS for axiom in methods.get(name).axioms}
    assert claims == set(AXIOMS)


HOMES = {
    "attn_lrp": ["vit"],
    "bagnet_evidence": ["bagnet"],
    "bcos_weights": ["bcos"],
    "deeplift": ["resnet", "vgg", "vit"],
    "deepshap": ["resnet", "vgg", "vit"],
    "libragrad": ["vit"],
}
COSTLY = ("guided_ig",)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        pytest.param(name, family, marks=[pytest.mark.slow] if name in COSTLY else [])
        for name in CLAIMANTS
        for family in HOMES.get(name, ["resnet", "vgg"])
    ],
)
def test_claims_are_kept(name, family):
    pair = load("shapes", family, 8, "cpu")
    assert methods.get(name).not_applicable(pair.network) is None
    verdict = axioms(methods.get(name), pair)
    assert verdict.passed, verdict.reason
