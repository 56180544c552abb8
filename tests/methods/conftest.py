"""Fixtures that tests of several families of methods use."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.methods.gradient_world import VECTORS


@pytest.fixture(scope="module")
def vectors():
    """The published maps of a small smooth network, and that network."""
    arrays = {name: torch.tensor(value) for name, value in np.load(VECTORS).items()}
    network = nn.Sequential(
        nn.Conv2d(3, 8, 5, 2, 2),
        nn.Tanh(),
        nn.Conv2d(8, 12, 3, 2, 1),
        nn.Softplus(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 4),
    ).requires_grad_(False)
    for place, layer in ((0, "c1"), (2, "features.0"), (6, "f")):
        network[place].weight.copy_(arrays[f"w_{layer}.weight"])
        network[place].bias.copy_(arrays[f"w_{layer}.bias"])
    return network, arrays
