"""Small networks of which it is known what a map must not do."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.graph.preparing import prepare

UNITS = 16


def perceptron(data: Dataset, seed: int = 0) -> nn.Sequential:
    """A random network with one hidden layer for the images of a dataset."""
    pixels = data.images.shape[1:].numel()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parts = nn.Linear(pixels, UNITS), nn.ReLU(), nn.Linear(UNITS, data.classes)
        return nn.Sequential(nn.Flatten(), *parts).requires_grad_(False)


def half_blind(data: Dataset, seed: int = 0) -> nn.Module:
    """A network that does not see the left half of an image."""
    network = perceptron(data, seed)
    _weights(network, data)[..., : data.images.shape[3] // 2] = 0
    return prepare(network)


def mirrored(data: Dataset, seed: int = 0) -> nn.Module:
    """A network to which an image and its mirror image are the same."""
    network = perceptron(data, seed)
    weights = _weights(network, data)
    weights.copy_((weights + weights.flip(3)) / 2)
    return prepare(network)


def rewritten(data: Dataset, seed: int = 0) -> tuple[nn.Module, nn.Module]:
    """Two networks that compute the same: the second adds relu(y) - relu(-y), which is y."""
    network = perceptron(data, seed)
    both, difference = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    identity = torch.eye(data.classes)
    both.weight = nn.Parameter(torch.cat([identity, -identity]), requires_grad=False)
    difference.weight = nn.Parameter(torch.cat([identity, -identity], 1), requires_grad=False)
    return prepare(network), prepare(nn.Sequential(*network, both, nn.ReLU(), difference))


def doubled(data: Dataset, seed: int = 0) -> tuple[nn.Module, nn.Module]:
    """Two networks, the second with logits that are twice as large."""
    network = perceptron(data, seed)
    louder = copy.deepcopy(network)
    for weight in louder[3].parameters():
        weight.mul_(2)
    return prepare(network), prepare(louder)


def without_biases(network: nn.Module) -> nn.Module:
    """A copy in which nothing is added to the signal: no biases, no shifts of batch norms."""
    bare = copy.deepcopy(network)
    for part in bare.modules():
        for name in ("bias", "running_mean"):
            if isinstance(values := getattr(part, name, None), Tensor):
                values.data.zero_()
    return bare


def _weights(network: nn.Sequential, data: Dataset) -> Tensor:
    """Of the hidden units, by pixel: [units, C, H, W], a view."""
    weight = network[1].weight
    assert isinstance(weight, Tensor)
    return weight.data.view(UNITS, *data.images.shape[1:])
