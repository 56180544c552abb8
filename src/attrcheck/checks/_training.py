"""Networks small enough to be trained inside a check, in seconds."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from attrcheck.models._train import Recipe, _learn

BATCH = 250
"""Images a pass where nothing is learnt."""


def trained(
    build: Callable[[], nn.Module], images: Tensor, labels: Tensor, recipe: Recipe, seed: int
) -> nn.Module:
    """A network, built and trained on normalised images, in eval mode; the seed decides all."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        network = build()
        for _ in _learn(network, images, labels, recipe):
            pass
    return network.eval().requires_grad_(False)


def accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of normalised images that a network gets right."""
    with torch.inference_mode():
        guesses = torch.cat([network(batch).argmax(1) for batch in torch.split(images, BATCH)])
    return float((guesses == labels).double().mean())
