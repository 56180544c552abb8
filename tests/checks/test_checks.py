"""What all checks of methods share: verdicts, declared failures, the face for unit tests."""

import pytest
import torch

from attrcheck.checks import check as checks
from attrcheck.contracts import Method
from attrcheck.engine.checking import examine
from attrcheck.methods import method as methods
from attrcheck.testing import check_method, parametrize_with_checks
from tests.worlds import load

PAIR = ("digits", "resnet", 8, "cpu")
OF_METHODS = {
    *("axioms", "contract", "data_randomisation", "emprt", "ground_truth", "input_invariance"),
    *("randomisation", "smprt", "target_sensitivity"),
}


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


def product(model, images, targets):
    return gradient(model, images, targets) * images


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


def test_methods_are_put_to_checks_of_methods_only():
    mark = parametrize_with_checks(gradient).mark
    assert [param.id for param in mark.args[1]] == [
        f"{name}(gradient)" for name in sorted(OF_METHODS)
    ]
    check_method(gradient, "contract,dummy_floor")


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
        ("emprt", brightness, "with random layers the complexity of its maps rises by 0.0%"),
        ("smprt", brightness, "with random layers, averaged over noise,"),
        ("data_randomisation", brightness, "trained on shuffled labels"),
        ("input_invariance", product, "when pixels have another zero"),
    ],
)
def test_each_check_catches_its_culprit(check, culprit, reason):
    result = verdict(check, culprit)
    assert result.status == "failed"
    assert reason in result.reason
    with pytest.raises(AssertionError, match=f"{check} of {culprit.__name__}"):
        check_method(culprit, check)


def test_a_declared_failure_is_expected_and_must_happen():
    why = {"target_sensitivity": "by design"}
    result = verdict("target_sensitivity", brightness, known_failures=why)
    assert result.status == "known_failure"
    assert result.reason.startswith("by design (maps for two classes")
    result = verdict("target_sensitivity", gradient, known_failures=why)
    assert result.status == "failed"
    assert result.reason == "passed, but is said to fail: by design"


def test_a_method_that_does_not_apply_is_said_so():
    result = verdict("contract", gradient, not_applicable=lambda model: "no reason at all")
    assert (result.status, result.reason) == ("not_applicable", "no reason at all")


def test_every_check_says_in_one_line_what_it_claims():
    for name in checks:
        first = (checks.get(name).run.__doc__ or "").partition("\n")[0]
        assert 20 < len(first) <= 100, name
