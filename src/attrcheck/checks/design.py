"""Designs of networks that are published to be easier to explain (Hesse et al. 2024).

Small networks that differ in one choice are trained, and methods are scored on both.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import nn

from attrcheck.checks import check
from attrcheck.contracts import Lab, Pair, Tuning, Verdict
from attrcheck.datasets.digits import digits
from attrcheck.methods import method as methods
from attrcheck.protocols.responses import responses
from attrcheck.protocols.single_deletion import SingleDeletion
from attrcheck.training.finetuning import Deletion
from attrcheck.training.loop import Recipe, accuracy, trained

METHODS = ("input_x_gradient", "integrated_gradients", "gradcam")
IMAGES, SEEDS = 100, 5
RECIPE = Recipe(epochs=20, batch=32, rate=4e-3, decay=0.05, warmup=0.3, shift=2)


@dataclass(frozen=True)
class Design:
    """A plain stack of convolutions with ReLUs, a mean over places and a linear layer."""

    depth: int = 4
    width: int = 16
    norm: bool = True
    bias: bool = True

    def build(self, channels: int, classes: int) -> nn.Sequential:
        """Two of the convolutions have a stride: the last map has a quarter of the sides."""
        widths = [channels, *[self.width] * self.depth]
        parts: list[nn.Module] = []
        for place, (inputs, outputs) in enumerate(pairwise(widths)):
            stride = 2 if place in (0, self.depth // 2) else 1
            layer = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=self.bias and not self.norm)
            nn.init.kaiming_normal_(layer.weight)
            norm = [nn.BatchNorm2d(outputs)] if self.norm else []
            parts += [layer, *norm, nn.ReLU()]
        last = nn.Linear(self.width, classes, bias=self.bias)
        return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), last)


@dataclass(frozen=True)
class Explained:
    """A network's accuracy, and the score of each method on it."""

    accuracy: float
    scores: dict[str, float]


_explained: dict[tuple[Design, int], Explained] = {}
"""By design and seed: the four checks share networks."""


@check("design_batch_norm", over="suite", default=False)
def design_batch_norm(lab: Lab) -> Verdict:
    """Methods score higher on a network without batch norm than on one with it."""
    return prefers(Design(norm=False), Design(), lab)


@check("design_bias", over="suite", default=False)
def design_bias(lab: Lab) -> Verdict:
    """Methods score higher on a network without biases; neither has a batch norm."""
    return prefers(Design(norm=False, bias=False), Design(norm=False), lab)


@check("design_depth", over="suite", default=False)
def design_depth(lab: Lab) -> Verdict:
    """Methods score higher on a network of 4 convolutions than on one of 8."""
    return prefers(Design(), Design(depth=8), lab)


@check("design_width", over="suite", default=False)
def design_width(lab: Lab) -> Verdict:
    """Methods score higher on a network of 16 channels than on one of 32."""
    return prefers(Design(), Design(width=32), lab)


def prefers(better: Design, worse: Design, lab: Lab) -> Verdict:
    """Whether methods score higher on the design that is published to be the better one.

    In the mean over methods and seeds, each of which trains a network of either design. A gain
    within two standard errors of zero says neither yes nor no.
    """
    figures: dict[str, float] = {}
    means = []
    for role, design in {"better": better, "worse": worse}.items():
        networks = []
        for seed in range(SEEDS):
            lab.progress(f"{design}, network {seed + 1} of {SEEDS}")
            if (design, seed) not in _explained:
                _explained[design, seed] = explained(lab, design, seed)
            networks.append(_explained[design, seed])
        scores = np.array([[network.scores[name] for name in METHODS] for network in networks])
        means.append(scores.mean(1))
        figures |= {
            f"{name}_on_{role}": float(score)
            for name, score in zip(METHODS, scores.mean(0), strict=True)
        }
        figures[f"accuracy_of_{role}"] = float(np.mean([network.accuracy for network in networks]))
    gains = means[0] - means[1]
    gain, error = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(SEEDS))
    figures |= {"gain": gain, "standard_error": error}
    reason = f"the gain is {gain:+.3f} with a standard error of {error:.3f}"
    if abs(gain) <= 2 * error:
        return Verdict(None, figures, f"too close to call: {reason}")
    return Verdict(gain > 0, figures, "" if gain > 0 else reason)


def explained(lab: Lab, design: Design, seed: int) -> Explained:
    """Train a network for which a deleted cell is in its domain, and score methods on it."""
    pair = pair_of(lab, design, seed)
    protocol, batch = SingleDeletion(), pair.batch(slice(None), 0, {})
    batch = replace(batch, intact=responses(pair.predictor, pair.images, pair.labels))
    drops = protocol.shared.observe(pair.predictor, batch)
    scores = {}
    for name in METHODS:
        maps = pair.attribute(methods.get(name), slice(0, IMAGES), seed=0)
        rows = protocol.observe(pair.predictor, batch, torch.from_numpy(maps), drops)
        scores[name] = protocol.reduce(rows).score
    return Explained(accuracy(pair.network, pair.images, pair.labels), scores)


def pair_of(lab: Lab, design: Design, seed: int) -> Pair:
    """A network of this design, after training on images of which half lack a cell."""
    data = digits()
    assert data.training is not None
    images, labels = data.training()
    delete = Deletion.of(data, Tuning(), data.labels.device)

    def build() -> nn.Module:
        return design.build(data.channels, data.classes)

    normalised = data.normalise(images[:])
    network = trained(build, normalised, labels, RECIPE, seed, delete.at_random)
    return lab.pair_of(network, data.head(IMAGES))
