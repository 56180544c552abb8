"""The checks catch what they are meant to catch, by name, and let good methods pass."""

from math import ceil

import numpy as np
import pytest
import torch

from attrcheck.checking import examine
from attrcheck.checks import check as checks
from attrcheck.checks._similarity import rank_correlation
from attrcheck.checks.randomisation import randomised
from attrcheck.loading import load
from attrcheck.methods import Method
from attrcheck.methods import method as methods
from attrcheck.testing import check_method, parametrize_with_checks

PAIR = ("digits", "resnet", 8, "cpu")


def gradient(model, images, targets):
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad


def noise(model, images, targets):
    return torch.rand_like(images) + gradient(model, images, targets)


def centred(model, images, targets):
    maps = gradient(model, images, targets)
    return maps - maps.mean(0)


def predicted_class(model, images, targets):
    return gradient(model, images, model(images).argmax(1))


def brightness(model, images, targets):
    return images


def forgets(model, images, targets):
    model.train()
    return images


def breaks(model, images, targets):
    return images / (1 // 0)


def verdict(check, function, **settings):
    return examine(checks.get(check), Method(function.__name__, function, **settings), load(*PAIR))


@parametrize_with_checks(gradient, methods.get("integrated_gradients"), methods.get("random"))
def test_good_methods_pass_and_dummies_fail_as_they_must(method_check):
    method_check()


@pytest.mark.parametrize(
    ("check", "culprit", "reason"),
    [
        ("contract", noise, "depends on the other images of its batch"),
        ("contract", centred, "depends on the other images of its batch"),
        ("contract", forgets, "changed the mode of the model"),
        ("contract", breaks, "raised ZeroDivisionError"),
        ("target_sensitivity", predicted_class, "maps for two classes"),
        ("target_sensitivity", brightness, "maps for two classes"),
        ("randomisation", brightness, "with random upper layers"),
    ],
)
def test_each_check_catches_its_culprit(check, culprit, reason):
    result = verdict(check, culprit)
    assert result["status"] == "failed"
    assert reason in result["reason"]
    with pytest.raises(AssertionError, match=f"{check} of {culprit.__name__}"):
        check_method(culprit, check)


def test_a_declared_failure_is_expected_and_must_happen():
    why = {"target_sensitivity": "by design"}
    result = verdict("target_sensitivity", brightness, known_failures=why)
    assert result["status"] == "known_failure"
    assert result["reason"].startswith("by design (maps for two classes")
    result = verdict("target_sensitivity", gradient, known_failures=why)
    assert result["status"] == "failed"
    assert result["reason"] == "passed, but is said to fail: by design"


def test_guided_backprop_fails_randomisation_and_the_gradient_does_not():
    guided = examine(checks.get("randomisation"), methods.get("guided_backprop"), load(*PAIR))
    plain = verdict("randomisation", gradient)
    assert guided["status"] == "known_failure"
    assert guided["figures"]["rank_correlation"] > 0.75 > plain["figures"]["rank_correlation"]


def test_a_method_that_does_not_apply_is_said_so():
    result = verdict("contract", gradient, applies=lambda model: "no reason at all")
    assert (result["status"], result["reason"]) == ("not_applicable", "no reason at all")


def test_rank_correlation_by_hand():
    one = np.array([[[1.0, 2.0], [3.0, 4.0]]], dtype=np.float32)
    assert rank_correlation(one, 10 * one**3) == pytest.approx(1)
    assert rank_correlation(one, -one) == pytest.approx(-1)
    assert rank_correlation(one, 0 * one) == 0
    # Ranks 1, 2, 3, 4 against 1.5, 1.5, 3, 4: the covariance is 4.5, the variances 5 and 4.5.
    tied = np.array([[[1.0, 1.0], [3.0, 4.0]]], dtype=np.float32)
    assert rank_correlation(one, tied) == pytest.approx(4.5 / np.sqrt(5 * 4.5))


def test_randomised_changes_the_upper_layers_only_and_the_same_way_every_time():
    network = load(*PAIR).network
    before = {name: weight.clone() for name, weight in network.named_parameters()}
    fresh = dict(randomised(network, 0.5).named_parameters())
    again = dict(randomised(network, 0.5).named_parameters())
    changed = [not torch.equal(fresh[name], weight) for name, weight in before.items()]
    assert changed == sorted(changed)
    assert sum(changed) == ceil(len(changed) / 2)
    assert all(torch.equal(fresh[name], again[name]) for name in fresh)
    assert all(torch.equal(network.get_parameter(name), before[name]) for name in before)
