"""IBA and InputIBA: how much information of each region the class needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.graph.halves import halves, needs_middle
from attrcheck.methods import method
from attrcheck.methods._adam import Adam
from attrcheck.store.digests import digest
from attrcheck.tensors.batching import in_batches, in_equal_batches
from attrcheck.tensors.images import blurred, enlarge, gaussian_weights
from attrcheck.tensors.memo import PerModel
from attrcheck.tensors.transfers import fetched, sent

STEPS, SAMPLES = 10, 10
RATE = 1.0
BETA = 10.0
"""Price of information, in nats per feature, against the cross-entropy."""
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

_FEATURES: PerModel[tuple[Tensor, Tensor]] = PerModel()


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
        weights = fetched(model.state_dict())
        key = digest(seen, dataset.mean, images.dtype, *weights.values())

        def distribution() -> tuple[Tensor, Tensor]:
            inputs = dataset.normalise(sent(seen, images))
            with torch.no_grad():
                parts = in_batches(lambda part: head(inputs[part]), len(inputs), model, inputs)
                features = torch.cat(list(parts))
            return features.mean(0), features.std(0, correction=0).clamp(min=LEAST)

        return cls(head, tail, *_FEATURES.get(model, key, distribution))

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
    adam = Adam(mask, RATE)
    for _ in range(steps):
        with torch.enable_grad():
            gate = smooth_gate(mask)
            cost = price(gate)
        total = torch.zeros_like(like)
        for _ in range(samples):
            noise = torch.stack([torch.randn(like.shape[1:], generator=draw) for draw in draws])
            total.add_(slope(sent(noise, like), gate.detach()), alpha=1 / samples)
        adam.step(torch.autograd.grad([cost, gate], mask, [torch.ones_like(cost), total])[0])
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
    weights = gaussian_weights(math.ceil(2 * BLUR), BLUR, mask.dtype)
    return blurred(mask.sigmoid(), weights, weights, "replicate")


@method(
    "iba",
    not_applicable=needs_middle,
    family="perturbation",
    # An upper bound: of the half before the bottleneck one pass is enough.
    passes=(STEPS * SAMPLES, STEPS * SAMPLES),
    reference="Schulz et al. 2020",
)
def iba(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
    steps: int = STEPS,
    samples: int = SAMPLES,
) -> Tensor:
    """Bits that pass a bottleneck z = g r + (1 - g) noise at the middle of the model.

    The gate g minimises cross-entropy + 10 * mean KL(z | noise), where the noise is as features
    r of the dataset's first 100 images are; summed over channels and enlarged to the image.
    """
    images = images.detach()
    halved = Halved.of(model, images, dataset)

    def bits(part: slice) -> Tensor:
        draws = [torch.Generator().manual_seed(seed) for seed in seeds[part]]
        gate, normal = halved.bottleneck(images[part], targets[part], draws, steps, samples)
        return enlarge(information(gate, normal).sum(1) / math.log(2), images)

    return torch.cat(list(in_batches(bits, len(images), model, images)))


@method(
    "input_iba",
    not_applicable=needs_middle,
    family="perturbation",
    # The half behind the middle for its gate, the half before it for the prior, then all of it.
    passes=(2 * STEPS * SAMPLES, 2 * STEPS * SAMPLES),
    reference="Zhang et al. 2021",
)
def input_iba(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
    dataset: Dataset,
    steps: int = STEPS,
    samples: int = SAMPLES,
) -> Tensor:
    """The gate g of z = g x + (1 - g) noise that minimises cross-entropy + 10 * mean information.

    Information that the prior gate p lets through is free: p is the gate at the image behind which
    features are nearest to those behind IBA's gate at the middle. Simpler than published: nearest
    by squares of normalised features, not by a generative adversarial fit. Mean over channels.
    """
    images = images.detach()
    halved = Halved.of(model, images, dataset)

    def gates(rows: Tensor) -> Tensor:
        draws = [torch.Generator().manual_seed(seeds[row]) for row in rows.tolist()]
        inputs, labels = images[rows], targets[rows]
        gate, normal = halved.bottleneck(inputs, labels, draws, steps, samples)
        wanted = halved.mean + halved.std * gate * normal

        def mismatch(noise: Tensor, at: Tensor) -> Tensor:
            with torch.enable_grad():
                leaf = at.requires_grad_()
                features = halved.head(noise.lerp(inputs, leaf))
                apart = ((features - wanted) / halved.std).square()
                loss = apart.flatten(1).mean(1).sum()
            return torch.autograd.grad(loss, leaf)[0]

        def slope(noise: Tensor, at: Tensor) -> Tensor:
            return class_slope(model, noise, inputs, at, labels)

        # Normalised images are of mean zero and variance one, as the noise is.
        prior = fitted_gate(inputs, draws, steps, samples, mismatch, lambda at: 0 * at.sum())

        def price(at: Tensor) -> Tensor:
            return BETA * information(at, inputs, prior).flatten(1).mean(1).sum()

        return fitted_gate(inputs, draws, steps, samples, slope, price).mean(1)

    return in_equal_batches(gates, model, images)
