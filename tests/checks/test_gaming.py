"""Transforms that keep the order; what is said when a judge sees more, or soundness does not."""

from dataclasses import replace

import pytest
import torch
from attrcheck.checks.gaming import DECIMALS, TRANSFORMS, gaming

from attrcheck.checks import gaming as module
from attrcheck.protocols.order import ranks_of


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_keep_the_order_of_rounded_values_and_make_no_ties(name):
    values = torch.rand(2, 40, 40, generator=torch.Generator().manual_seed(0)).double()
    values = (values**6).round(decimals=DECIMALS)
    changed = TRANSFORMS[name](values)
    assert torch.equal(ranks_of(changed, (1, 2)), ranks_of(values, (1, 2)))
    assert len(changed.unique()) == len(values.unique())
    assert ((changed >= 0) & (changed <= 1)).all()


def run(lab_of):
    lab = lab_of()
    return gaming(replace(lab, settings=replace(lab.settings, profile="smoke")))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "METHOD", "saliency")
    monkeypatch.setitem(module.IMAGES, "smoke", 8)
    monkeypatch.setattr(module, "BY_ORDER", ("morf",))


def test_an_order_is_an_order_to_the_last_digit(small, lab_of):
    figures = run(lab_of).figures
    assert figures["morf_plain"] == figures["morf_cubed"] == figures["morf_raised"]
    assert len({figures[f"completeness_{how}"] for how in TRANSFORMS}) == 3


def test_a_judge_that_sees_values_does_not_pass_for_one_by_order(small, lab_of, monkeypatch):
    monkeypatch.setattr(module, "BY_ORDER", ("completeness",))
    found = run(lab_of)
    assert found.passed is False
    assert "completeness sees more than an order" in found.reason


def test_transforms_that_do_not_do_what_they_should_are_told(small, lab_of, monkeypatch):
    swapped = {
        "plain": TRANSFORMS["plain"],
        "cubed": TRANSFORMS["plain"],
        "raised": TRANSFORMS["plain"],
    }
    monkeypatch.setattr(module, "TRANSFORMS", swapped)
    found = run(lab_of)
    assert found.reason == "cubing does not lift soundness; .6 + .4 a does not sink soundness"


@pytest.mark.slow
def test_soundness_is_gamed_as_published(lab_of, verdict_of):
    found = verdict_of("gaming", lab_of())
    assert found["status"] == "passed"
    figures = found["figures"]
    assert figures["soundness_raised"] < figures["soundness_plain"] < figures["soundness_cubed"]
