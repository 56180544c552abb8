"""InputIBA: the information bottleneck at the image itself (Zhang et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.graph.halves import needs_middle
from attrcheck.methods import method
from attrcheck.methods._bottleneck import BETA, Halved, class_slope, fitted_gate, information
from attrcheck.methods._equal import in_equal_batches

STEPS, SAMPLES = 10, 10


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
) -> Tensor:
    """The gate g of z = g x + (1 - g) noise that minimises cross-entropy + 10 * mean information.

    Information that the prior gate p lets through is free: p is the gate at the image behind which
    features are nearest to those behind IBA's gate at the middle. Simpler than published: nearest
    by squares of normalised features, not by a generative adversarial fit. Mean over channels.
    """
    return input_gates(model, images, targets, seeds, dataset, STEPS, SAMPLES)


def input_gates(
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
    dataset: Dataset,
    steps: int,
    samples: int,
) -> Tensor:
    """The map of every image."""
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
