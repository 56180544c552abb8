"""Small networks that differ in one choice of design, and how well methods explain them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from math import ceil

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Lab, Pair, Tuning, Verdict
from attrcheck.datasets import dataset as datasets
from attrcheck.methods import method as methods
from attrcheck.protocols.responses import responses
from attrcheck.protocols.single_deletion import SingleDeletion
from attrcheck.training.finetuning import Deletion
from attrcheck.training.loop import accuracy, shifted

DATASET = "digits"
METHODS = ("input_x_gradient", "integrated_gradients", "gradcam")
IMAGES, SEEDS = 100, 5
EPOCHS, BATCH, RATE, SHIFT = 20, 32, 4e-3, 2


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


_KNOWN: dict[tuple[Design, int], Explained] = {}


def prefers(better: Design, worse: Design, lab: Lab) -> Verdict:
    """Whether methods score higher on the design that is published to be the better one.

    In the mean over methods and seeds, each of which trains a network of either design. A gain
    within two standard errors of zero says neither yes nor no.
    """
    figures: dict[str, float] = {}
    means = []
    for role, design in {"better": better, "worse": worse}.items():
        every = []
        for seed in range(SEEDS):
            lab.progress(f"{design}, network {seed + 1} of {SEEDS}")
            if (design, seed) not in _KNOWN:
                _KNOWN[design, seed] = explained(lab, design, seed)
            every.append(_KNOWN[design, seed])
        scores = np.array([[each.scores[name] for name in METHODS] for each in every])
        means.append(scores.mean(1))
        figures |= {
            f"{name}_on_{role}": float(score)
            for name, score in zip(METHODS, scores.mean(0), strict=True)
        }
        figures[f"accuracy_of_{role}"] = float(np.mean([each.accuracy for each in every]))
    gains = means[0] - means[1]
    gain, error = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(SEEDS))
    figures |= {"gain": gain, "standard_error": error}
    told = f"the gain is {gain:+.3f} with a standard error of {error:.3f}"
    if abs(gain) <= 2 * error:
        return Verdict(None, figures, f"too close to call: {told}")
    return Verdict(gain > 0, figures, "" if gain > 0 else told)


def explained(lab: Lab, design: Design, seed: int) -> Explained:
    """Train a network for which a deleted cell is in its domain, and judge methods on it."""
    pair = trained(lab, design, seed)
    judge, batch = SingleDeletion(), pair.batch(slice(None), 0, {})
    batch = replace(batch, intact=responses(pair.predictor, pair.images, pair.labels))
    drops = judge.shared.observe(pair.predictor, batch)
    scores = {}
    for name in METHODS:
        maps = pair.attribute(methods.get(name), slice(0, IMAGES), seed=0)
        rows = judge.observe(pair.predictor, batch, torch.from_numpy(maps), drops)
        scores[name] = judge.reduce(rows).score
    return Explained(accuracy(pair.network, pair.images, pair.labels), scores)


def trained(lab: Lab, design: Design, seed: int) -> Pair:
    """A network of this design, after training on images of which half lack a cell."""
    data = datasets.get(DATASET).load()
    assert data.training is not None
    images, labels = data.training()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        network = design.build(data.channels, data.classes)
        delete = Deletion.of(data, Tuning(), images.device)
        _learn(network, data.normalise(images), labels, delete)
    return lab.pair_of(network.eval(), data.head(IMAGES))


def _learn(network: nn.Module, images: Tensor, labels: Tensor, delete: Deletion) -> None:
    steps = EPOCHS * ceil(len(images) / BATCH)
    optimiser = torch.optim.AdamW(network.parameters(), RATE, weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    network.train()
    for _ in range(EPOCHS):
        for chosen in torch.split(torch.randperm(len(images)), BATCH):
            batch = delete.at_random(shifted(images[chosen], SHIFT))
            loss = F.cross_entropy(network(batch), labels[chosen])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
