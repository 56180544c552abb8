"""Which network a method gets, and what is said where it fails on it."""

from functools import partial

import pytest
import torch
from torch import fx, nn

import attrcheck
from attrcheck.contracts import Method
from attrcheck.engine.attribution import attribute, not_applicable
from attrcheck.engine.keys import of_method
from attrcheck.errors import MethodError
from attrcheck.methods import method as methods
from tests.worlds import load


def hooked_cam(model, images, targets):
    """Grad-CAM as people write it: hooks on a part of their own network, and backward()."""
    kept = {}
    layer = model[-4]
    handles = [
        layer.register_forward_hook(lambda part, given, out: kept.update(out=out)),
        layer.register_full_backward_hook(lambda part, given, out: kept.update(slope=out[0])),
    ]
    model(images).gather(1, targets[:, None]).sum().backward()
    for handle in handles:
        handle.remove()
    cam = (kept["out"] * kept["slope"].mean((2, 3), keepdim=True)).sum(1).relu()
    return nn.functional.interpolate(cam[:, None], images.shape[2:], mode="bilinear")[:, 0]


def test_hooks_fire_on_the_parts_that_the_author_named():
    pair = load("digits", "resnet", 4)
    theirs = attribute(Method("hooked", hooked_cam, constant="may be"), pair, seed=0)
    ours = attribute(methods.get("gradcam"), pair, seed=0)
    torch.testing.assert_close(
        *(torch.from_numpy(entry.arrays["maps"]) for entry in (theirs, ours)), rtol=1e-4, atol=1e-6
    )
    assert all(parameter.grad is None for parameter in pair.original.parameters())


@pytest.mark.parametrize("name", ["saliency", "lrp", "random", "captum:Saliency"])
def test_what_ships_with_attrcheck_gets_the_prepared_graph(name):
    assert methods.get(name).prepared is True
    assert Method("mine", partial(methods.get(name).attribute)).prepared is True


def test_a_method_may_ask_for_either():
    assert Method("mine", hooked_cam).prepared is False
    assert Method("mine", hooked_cam, prepared=True).prepared is True
    assert Method("mine", methods.get("lrp").attribute, prepared=False).prepared is False


def test_maps_of_one_form_are_not_taken_for_those_of_the_other():
    one, other = (Method("mine", hooked_cam, prepared=form) for form in (True, False))
    assert of_method(one, None) != of_method(other, None)


def test_the_original_is_in_eval_mode_and_nobody_elses(tiny):
    built = []

    def build(data):
        built.append(tiny.network(data).train().requires_grad_(True))
        return built[0]

    attrcheck.model("kept", datasets="tiny")(build)
    pair = tiny.loader.pair("tiny", "kept")
    assert not any(part.training for part in pair.original.modules())
    assert all(weight.requires_grad for weight in pair.original.parameters())
    mine = {id(part) for part in pair.original.modules()}
    others = (built[0], pair.forms.built, pair.network, pair.predictor)
    assert not any(id(part) in mine for other in others for part in other.modules())


def test_a_change_of_the_original_is_the_methods_error(tiny):
    def spoils(model, images, targets):
        model[3].weight.data.mul_(2)
        return images

    with pytest.raises(MethodError, match=r"changed the weights of the model \(3.weight\)"):
        attribute(tiny.method(spoils), tiny.pair, seed=0)


def helper(images):
    return images.view(7, 7, 7)  # too few


def test_an_error_quotes_the_users_own_line(tiny):
    def calls(model, images, targets):
        return helper(torch.nn.functional.relu(images))

    with pytest.raises(MethodError) as caught:
        attribute(tiny.method(calls), tiny.pair, seed=0)
    line = helper.__code__.co_firstlineno + 1
    quoted = f"(at test_networks_for_methods.py:{line}: return images.view(7, 7, 7)  # too few)"
    assert str(caught.value).endswith(quoted)


def test_an_error_deep_in_torch_quotes_the_line_that_called_it(tiny):
    def calls(model, images, targets):
        return nn.Linear(3, 3)(images)

    with pytest.raises(MethodError, match=r"\(at test_networks_for_methods.py:\d+: .*nn.Linear\("):
        attribute(tiny.method(calls), tiny.pair, seed=0)


def test_an_error_of_a_built_in_method_quotes_its_own_file(tiny):
    with pytest.raises(MethodError, match=r"\(at \w+\.py:\d+: "):
        attribute(methods.get("gradcam"), tiny.pair, seed=0)


class Branches(nn.Module):
    def forward(self, x):
        return x.relu() if x.sum() > 0 else x


def test_a_model_can_be_helped_to_be_traced(tiny):
    def build(data):
        return nn.Sequential(Branches(), tiny.network(data))

    attrcheck.model("stuck", datasets="tiny")(build)
    attrcheck.model("helped", datasets="tiny", leaf=[Branches])(build)
    gradient, lrp = methods.get("gradient"), methods.get("lrp")
    with pytest.warns(UserWarning, match="cannot be traced"):
        stuck = tiny.loader.pair("tiny", "stuck").network
    assert "could not be traced: TraceError" in not_applicable(
        lrp, tiny.loader.pair("tiny", "stuck")
    )
    helped = tiny.loader.pair("tiny", "helped")
    assert isinstance(helped.network, fx.GraphModule)
    assert "no rule for Branches (at 0)" in not_applicable(lrp, helped)
    maps = [
        attribute(gradient, tiny.loader.pair("tiny", name), seed=0).arrays["maps"]
        for name in ("stuck", "helped")
    ]
    assert (maps[0] == maps[1]).all()
    assert not isinstance(stuck, fx.GraphModule)
    keys = [tiny.loader.pair("tiny", name).key for name in ("stuck", "helped")]
    assert "traced" in keys[1]
    assert "traced" not in keys[0]
