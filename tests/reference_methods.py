"""Networks to try methods on, and slow, obvious re-implementations of what methods compute."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.datasets import Dataset, dataset
from attrcheck.models import model
from attrcheck.models._weights import load_weights

FAMILIES = ["resnet", "vgg", "inception", "efficientnet", "densenet"]
SIDE = 32


def smooth_images(count, side=SIDE, channels=3, seed=1):
    """Smooth noise of about unit variance, centred as normalised images are."""
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn(count, channels, side, side, generator=generator)
    return 3 * F.avg_pool2d(noise, 5, 1, 2)


def blank(classes=10):
    """All that a model needs to know of a dataset."""
    image, label = torch.zeros(1, 3, SIDE, SIDE), torch.zeros(1, dtype=torch.int64)
    return Dataset("blank", image, label, classes, (0.0,) * 3, (1.0,) * 3, ("blank/0",))


def random_family(name, seed=0):
    """An embedded model with random weights and lively batch norms."""
    torch.manual_seed(seed)
    return enliven(model.get(name).build(blank()), SIDE)


def enliven(network, side):
    """Random affine parameters in batch norms, and statistics as after training."""
    norms = [part for part in network.modules() if isinstance(part, nn.BatchNorm2d)]
    for norm in norms:
        nn.init.uniform_(norm.weight, 0.5, 1.5)
        nn.init.normal_(norm.bias, 0, 0.3)
        norm.momentum = None
    network.train()
    with torch.no_grad():
        network(smooth_images(32, side, seed=2))
    return network.eval()


def trained_family(name, count):
    """An embedded model with its weights for the shapes, and normalised images and labels."""
    data = dataset.get("shapes").load()
    network = model.get(name).build(data)
    load_weights(network, "shapes", name)
    return network.eval(), data.normalise(data.images[:count]), data.labels[:count]


def without_biases(prepared):
    """A copy in which nothing is added but signals."""
    bare = copy.deepcopy(prepared)
    for part in bare.modules():
        if getattr(part, "bias", None) is not None:
            nn.init.zeros_(part.bias)
        if isinstance(part, nn.BatchNorm2d):
            nn.init.zeros_(part.running_mean)
    return bare


def plain_gradient(network, images, targets):
    """df/dx, channels kept."""
    inputs = images.clone().requires_grad_()
    network(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad


def integrated_gradients(network, images, targets, steps=50):
    """x times the weighted sum of gradients at the nodes of Gauss and Legendre, node by node."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    total = torch.zeros_like(images)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        total += float(weight) * plain_gradient(network, float(node) * images, targets)
    return (images * total).sum(1)


def dense(linear, shape):
    """The matrix [outputs, inputs] of a linear map of one image, column by column."""
    columns = []
    for place in range(int(np.prod(shape))):
        unit = torch.zeros(int(np.prod(shape)))
        unit[place] = 1
        columns.append(linear(unit.view(1, *shape)).flatten())
    return torch.stack(columns, 1).double().numpy()


def share_by_sign(matrix, bias, x, relevance):
    """Relevance of every input: each output's goes to the contributions of its own sign."""
    shared = np.zeros_like(x)
    for row, shift, amount in zip(matrix, bias, relevance, strict=True):
        contributions = row * x
        sign = 1 if contributions.sum() + shift >= 0 else -1
        wanted = np.where(contributions * sign > 0, contributions, 0)
        total = wanted.sum() + (shift if shift * sign > 0 else 0)
        if total:
            shared += wanted / total * amount
    return shared


def change(model, images):
    """f(x) - f(0), for all classes."""
    with torch.no_grad():
        return model(images) - model(torch.zeros_like(images[:1]))


def of(rows, targets):
    """Each row at its target."""
    return rows.gather(1, targets[:, None])[:, 0]
