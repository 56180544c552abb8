"""A method that fails, spoils what it gets or does not apply costs nobody else anything."""

import sys
from dataclasses import dataclass

import pytest

import attrcheck
from attrcheck.protocols.ablation import Ablation
from tests.engine.test_evaluation import counting, same, statuses, uneven


def explode(model, images, targets):
    raise ValueError("no slope here")


def test_a_method_that_raises_fails_alone(tiny, tmp_path):
    expected = tiny.run(store=tmp_path / "good")
    tiny.methods = ("brightness", "explode", "slope")
    attrcheck.method("explode")(explode)
    result = tiny.run()
    assert statuses(result) == {"brightness": "ok", "explode": "error", "slope": "ok"}
    failed = result.outcomes["explode"]
    assert "method 'explode' on tiny-linear raised ValueError" in failed.reason
    assert "no slope here" in failed.reason
    assert failed.score is None
    assert len(failed.replicates) == 0
    result.outcomes.pop("explode")
    assert same(result, expected)


def test_a_failure_is_not_kept(tiny):
    broken = [True]

    def sometimes(model, images, targets):
        if broken:
            raise ValueError
        return images.sum(1)

    tiny.add("sometimes", sometimes)
    assert statuses(tiny.run())["sometimes"] == "error"
    assert statuses(tiny.run())["sometimes"] == "error"
    broken.clear()
    assert statuses(tiny.run())["sometimes"] == "ok"


def spoil_weights(model, images, targets):
    for parameter in model.parameters():
        parameter.data.mul_(-1)
    return images.sum(1)


def spoil_mode(model, images, targets):
    model.train()
    return images.sum(1)


def spoil_hooks(model, images, targets):
    model.register_forward_hook(lambda module, inputs, output: -output)
    return images.sum(1)


def spoil_precision(model, images, targets):
    model.double()
    return images.sum(1)


def spoil_and_raise(model, images, targets):
    spoil_weights(model, images, targets)
    raise ValueError


@pytest.mark.parametrize(
    "spoil", [spoil_weights, spoil_mode, spoil_hooks, spoil_precision, spoil_and_raise]
)
def test_a_method_that_spoils_the_model_spoils_it_for_nobody_else(tiny, tmp_path, spoil):
    expected = tiny.run(store=tmp_path / "good")
    attrcheck.method("a_spoiler")(spoil)
    tiny.methods = ("a_spoiler", *tiny.methods)
    result = tiny.run()
    assert result.outcomes.pop("a_spoiler").status == "error"
    assert same(result, expected)


def test_a_method_that_does_not_apply_is_no_failure(tiny):
    function, calls = counting(uneven)
    reason = "needs an attention layer"
    tiny.add("away", function, not_applicable=lambda model: reason)
    result = tiny.run()
    assert result.outcomes["away"].status == "not_applicable"
    assert result.outcomes["away"].reason == reason
    assert calls == []
    assert statuses(result)["slope"] == "ok"


@pytest.mark.parametrize("form", ["network", "original"])
def test_a_method_is_asked_about_the_network_that_it_gets(tiny, form):
    asked = []
    settings = {"not_applicable": lambda model: asked.append(model)}
    tiny.add("asks", uneven, prepared=form == "network", **settings)
    assert statuses(tiny.run())["asks"] == "ok"
    assert asked == [getattr(tiny.pair, form)]


def test_a_method_that_raises_when_it_is_asked_fails_alone(tiny):
    tiny.add("curious", uneven, not_applicable=lambda model: model.no_such_layer)
    result = tiny.run()
    assert statuses(result) == {"brightness": "ok", "slope": "ok", "curious": "error"}
    assert "curious" in result.outcomes["curious"].reason


@pytest.mark.parametrize(
    "text", ["raise ImportError('no such library')", "pass"], ids=["raises", "registers nothing"]
)
def test_a_method_that_cannot_be_imported_fails_alone(tiny, tmp_path, monkeypatch, text):
    """As an entry point of another package may."""
    (tmp_path / "broken_plugin_module.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "broken_plugin_module", raising=False)
    declared = {**attrcheck.method._declared, "plugged": "broken_plugin_module"}
    monkeypatch.setitem(attrcheck.method.__dict__, "_declared", declared)
    result = tiny.run(methods=("brightness", "plugged"))
    assert statuses(result) == {"brightness": "ok", "plugged": "error"}
    assert "'plugged'" in result.outcomes["plugged"].reason


def test_a_protocol_that_breaks_on_one_method_names_it_and_goes_on(tiny):
    @dataclass(frozen=True)
    class Picky(Ablation):
        def observe(self, model, batch, maps, shared):
            if (maps < 0).any():
                raise ValueError("a negative map")
            return super().observe(model, batch, maps, shared)

    attrcheck.protocol("picky")(lambda: Picky(True, False))
    tiny.add("grim", lambda model, images, targets: -images[:, 0].abs() - 1)
    tiny.add("glad", lambda model, images, targets: images[:, 0].abs() + 1)
    found = tiny.run("tiny-linear-picky", methods=("grim", "glad")).outcomes
    assert found["glad"].status == "ok"
    assert found["grim"].status == "error"
    reason = found["grim"].reason
    assert "scoring method 'grim' on tiny-linear raised ValueError" in reason
    assert "starts with image 'picture0'" in reason
    assert "a negative map" in reason
