"""A map must not depend on where zero is: the same pictures, written otherwise."""

import pytest
import torch
from torch import nn

from attrcheck.checks import check as checks
from attrcheck.checks.dependence import input_invariance, recoded, undoing
from attrcheck.contracts import Method
from attrcheck.engine.checking import examine
from attrcheck.methods import method as methods
from tests.worlds import load

PAIR = ("digits", "resnet", 8, "cpu")


def weights(model, images, targets):
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad


def times_input(model, images, targets):
    return weights(model, images, targets) * images


def times_distance_from_black(model, images, targets, *, dataset):
    black = dataset.normalise(torch.zeros_like(images[:1]))
    return weights(model, images, targets) * (images - black)


@pytest.mark.parametrize("pair", [PAIR, ("shapes", "vit", 8, "cpu")], ids=lambda pair: pair[1])
def test_recoded_pictures_have_the_same_logits(pair):
    pair = load(*pair)
    other = recoded(pair)
    assert torch.equal(other.dataset.images[:], pair.dataset.images[:])
    shift = (other.images - pair.images).mean((0, 2, 3))
    assert torch.allclose(shift, -1 / torch.tensor(pair.dataset.std), atol=1e-4)
    for form in ("network", "original"):
        before, after = getattr(pair, form)(pair.images), getattr(other, form)(other.images)
        assert torch.allclose(before, after, atol=1e-3)
        assert not torch.allclose(before, getattr(pair, form)(other.images), atol=0.1)
    raw = other.dataset.denormalise(other.images)
    assert torch.allclose(raw, pair.dataset.denormalise(pair.images), atol=1e-5)


def test_the_network_itself_stays_as_it_was():
    network = nn.Sequential(nn.Conv2d(1, 2, 3, padding=1), nn.ReLU())
    images = torch.rand(2, 1, 5, 5)
    before = network(images)
    after = undoing(network, torch.tensor([3.0]))(images + 3)
    assert torch.allclose(after, before, atol=1e-5)  # the zeros at the border included
    assert len(network) == 2


def test_a_reference_that_moves_with_the_pictures_passes_and_zero_does_not():
    """By hand: w (x - s) is not w x, but (x - s) - (black - s) is x - black."""
    good = [Method(one.__name__, one) for one in (weights, times_distance_from_black)]
    for method in good:
        verdict = input_invariance(method, load(*PAIR))
        assert verdict.passed, method.name
        assert verdict.figures["change"] < 1e-3
    verdict = input_invariance(Method("times_input", times_input), load(*PAIR))
    assert verdict.passed is False
    assert "when pixels have another zero" in verdict.reason
    assert "`known_failures`" in verdict.reason


def test_a_change_of_values_alone_is_a_change():
    verdict = input_invariance(
        Method("brightness", lambda model, images, targets: images), load(*PAIR)
    )
    assert verdict.figures["rank_correlation"] == pytest.approx(1, abs=1e-3)
    assert verdict.figures["change"] > 1
    assert verdict.passed is False


def test_built_in_methods_are_as_in_the_paper():
    statuses = {
        name: examine(checks.get("input_invariance"), methods.get(name), load(*PAIR)).status
        for name in ("gradient", "guided_backprop", "input_x_gradient", "lrp", "deepshap")
    }
    assert statuses == {
        "gradient": "passed",
        "guided_backprop": "passed",
        "input_x_gradient": "known_failure",
        "lrp": "known_failure",
        "deepshap": "passed",
    }


def test_what_no_longer_applies_is_said_so():
    verdict = input_invariance(methods.get("bcos_weights"), load("digits", "bcos", 8, "cpu"))
    assert verdict.passed is None
    assert verdict.reason.startswith("with a shift of the input undone in the network: there is no")
