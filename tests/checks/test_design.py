"""Designs are what they say, and a published direction holds, fails, or cannot be told."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.checks import design as designs
from attrcheck.checks.design import METHODS, RECIPE, Design, Explained, explained, pair_of, prefers


def parts(network, kind):
    return [part for part in network.modules() if isinstance(part, kind)]


@pytest.mark.parametrize("depth", [4, 8])
@pytest.mark.parametrize("norm", [False, True])
def test_a_design_is_what_it_says(depth, norm):
    network = Design(depth=depth, width=5, norm=norm).build(3, 7)
    assert len(parts(network, nn.Conv2d)) == len(parts(network, nn.ReLU)) == depth
    assert len(parts(network, nn.BatchNorm2d)) == norm * depth
    assert {layer.out_channels for layer in parts(network, nn.Conv2d)} == {5}
    images = torch.rand(2, 3, 32, 32)
    assert network(images).shape == (2, 7)
    pool = next(
        place for place, layer in enumerate(network) if isinstance(layer, nn.AdaptiveAvgPool2d)
    )
    assert network[:pool](images).shape == (2, 5, 8, 8)


def test_without_biases_black_gives_nothing():
    bare = Design(norm=False, bias=False).build(1, 10)
    assert not any("bias" in name for name, _ in bare.named_parameters())
    assert bare(torch.zeros(1, 1, 32, 32)).abs().max() == 0
    assert Design(norm=False).build(1, 10)(torch.zeros(1, 1, 32, 32)).abs().max() > 0


@pytest.mark.parametrize(
    ("gains", "passed", "reason"),
    [
        ([0.1, 0.2, 0.1, 0.2, 0.15], True, ""),
        ([-0.1, -0.2, -0.1, -0.2, -0.15], False, "the gain is -0.150 with a standard error of"),
        ([0.1, -0.1, 0.1, -0.1, 0.05], None, "too close to call: the gain is +0.010"),
    ],
)
def test_a_direction_holds_fails_or_cannot_be_told(monkeypatch, gains, passed, reason):
    lines = []

    def result(lab, design, seed):
        score = 0.5 + (gains[seed] if design.depth == 4 else 0)
        return Explained(0.9, dict.fromkeys(METHODS, score))

    monkeypatch.setattr(designs, "_explained", {})
    monkeypatch.setattr(designs, "explained", result)
    verdict = prefers(Design(), Design(depth=8), SimpleNamespace(progress=lines.append))
    assert verdict.passed is passed
    assert verdict.reason.startswith(reason)
    assert verdict.figures["gain"] == pytest.approx(np.mean(gains))
    assert verdict.figures["standard_error"] == pytest.approx(np.std(gains, ddof=1) / 5**0.5)
    assert verdict.figures["gradcam_on_worse"] == 0.5
    assert len(lines) == 10


@pytest.mark.slow
def test_a_network_is_trained_in_seconds_and_explained(monkeypatch, lab_of):
    monkeypatch.setattr(designs, "RECIPE", replace(RECIPE, epochs=6))
    lab = lab_of()
    result = explained(lab, Design(), 0)
    assert result.accuracy > 0.8
    assert set(result.scores) == set(METHODS)
    assert all(0.1 < score < 1 for score in result.scores.values())
    weights = [pair_of(lab, Design(), 0).network.state_dict() for _ in range(2)]
    assert all(weights[0][name].equal(weights[1][name]) for name in weights[0])
