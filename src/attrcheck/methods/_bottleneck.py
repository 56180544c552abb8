"""Bottlenecks: a model in two halves, and the gate that lets through what a class needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.graph.halves import halves
from attrcheck.store.fingerprints import digest
from attrcheck.tensors.batching import in_batches

RATE = 1.0
BETA = 10.0
"""Price of information, in nats a feature, against the cross-entropy."""
OPEN = 5.0
"""Where the mask starts, before its sigmoid: nearly all passes."""
BLUR = 1.0
"""Standard deviation, in cells, of the Gaussian that smooths the mask."""
ESTIMATE = 100
"""Images of the dataset, from its start, that tell how features are distributed."""
LEAST = 0.01
"""The least standard deviation of a feature."""

Generators = list[torch.Generator]
Slope = Callable[[Tensor, Tensor], Tensor]
"""The derivative of a loss by the gate, from noise and gate."""

_KNOWN: WeakKeyDictionary[nn.Module, tuple[str, Tensor, Tensor]] = WeakKeyDictionary()


@dataclass(frozen=True)
class Halved:
    """A model before and after its middle, and how features are distributed there."""

    head: nn.Module
    tail: nn.Module
    mean: Tensor
    std: Tensor

    @classmethod
    def of(cls, model: nn.Module, images: Tensor, dataset: Dataset) -> Halved:
        """Cut a model; the distribution is kept until its weights change."""
        head, tail = halves(model)
        seen = dataset.images[:ESTIMATE]
        key = digest(seen, dataset.mean, images.dtype, *model.state_dict().values())
        if key != _KNOWN.get(model, ("",))[0]:
            inputs = dataset.normalise(seen.to(images))
            with torch.no_grad():
                found = in_batches(lambda part: head(inputs[part]), len(inputs), model, inputs)
                features = torch.cat(list(found))
            _KNOWN[model] = key, features.mean(0), features.std(0, correction=0).clamp(min=LEAST)
        return cls(head, tail, *_KNOWN[model][1:])

    def bottleneck(
        self, images: Tensor, targets: Tensor, draws: Generators, steps: int, samples: int
    ) -> tuple[Tensor, Tensor]:
        """The gate at the middle, and the normalised features that it weighs."""
        with torch.no_grad():
            features = self.head(images)
        normal = (features - self.mean) / self.std

        def slope(noise: Tensor, gate: Tensor) -> Tensor:
            noise = noise * self.std + self.mean
            return class_slope(self.tail, noise, features, gate, targets)

        def price(gate: Tensor) -> Tensor:
            return BETA * information(gate, normal).flatten(1).mean(1).sum()

        return fitted_gate(normal, draws, steps, samples, slope, price), normal


def fitted_gate(
    like: Tensor,
    draws: Generators,
    steps: int,
    samples: int,
    slope: Slope,
    price: Callable[[Tensor], Tensor],
) -> Tensor:
    """The gate that minimises a loss, known by its slope over noisy samples, plus a price."""
    mask = torch.full_like(like, OPEN).requires_grad_()
    # Adam works element by element, so that images in one batch do not see each other.
    optimiser = torch.optim.Adam([mask], lr=RATE)
    for _ in range(steps):
        with torch.enable_grad():
            gate = smooth_gate(mask)
            cost = price(gate)
        total = torch.zeros_like(like)
        for _ in range(samples):
            noise = torch.stack([torch.randn(like.shape[1:], generator=draw) for draw in draws])
            total.add_(slope(noise.to(like), gate.detach()), alpha=1 / samples)
        (mask.grad,) = torch.autograd.grad([cost, gate], mask, [torch.ones_like(cost), total])
        optimiser.step()
    with torch.no_grad():
        return smooth_gate(mask)


def class_slope(
    network: nn.Module, noise: Tensor, signal: Tensor, gate: Tensor, targets: Tensor
) -> Tensor:
    """The derivative of each image's cross-entropy by the gate between its noise and signal."""
    with torch.enable_grad():
        leaf = gate.detach().requires_grad_()
        loss = F.cross_entropy(network(noise.lerp(signal, leaf)), targets, reduction="sum")
    return torch.autograd.grad(loss, leaf)[0]


def information(gate: Tensor, normal: Tensor, prior: Tensor | float = 0.0) -> Tensor:
    """KL(N(g r, (1 - g)^2) | N(p g r, (1 - p g)^2)) of every feature r, normalised, in nats.

    The prior p says how much of what gate g lets through is known already, and free.
    """
    scale = (1 - prior * gate).clamp(min=1e-6)
    spread = (1 - gate).clamp(min=1e-6) / scale
    shift = (1 - prior) * gate * normal / scale
    return (shift**2 + spread**2 - 1) / 2 - spread.log()


def smooth_gate(mask: Tensor) -> Tensor:
    """The sigmoid of the mask, smoothed over space in each channel."""
    radius = math.ceil(2 * BLUR)
    line = torch.exp(-((torch.arange(-radius, radius + 1).to(mask) / BLUR) ** 2) / 2)
    line = (line / line.sum()).expand(mask.shape[1], 1, -1)
    gate = F.pad(mask.sigmoid(), [radius] * 4, mode="replicate")
    gate = F.conv2d(gate, line[..., None], groups=len(line))
    return F.conv2d(gate, line[:, :, None], groups=len(line))
