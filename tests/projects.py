"""A user's project in a few lines: a dataset, a model and methods of its own, in a conftest."""

TINY = """
import os, signal
import torch
from torch import nn
import attrcheck
from attrcheck.datasets import Dataset

@attrcheck.dataset("halves")
def halves():
    "Noise; the class says which half is brighter."
    images = torch.rand(30, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    labels = (images[..., :4].sum((1, 2, 3)) > images[..., 4:].sum((1, 2, 3))).long()
    return Dataset("halves", images, labels, 2, (0.5,), (0.3,), tuple(f"h{i}" for i in range(30)))

@attrcheck.model("linear", datasets="halves")
def linear(dataset):
    "Knows the answer."
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 2, bias=False))
    side = torch.ones(8, 8)
    side[:, 4:] = -1
    network[1].weight.data = torch.stack([-side.flatten(), side.flatten()])
    return network

@attrcheck.model("steep", datasets="halves")
def steep(dataset):
    "Knows it too."
    network = linear(dataset)
    network[1].weight.data *= 10
    return network

@attrcheck.method("exact")
def exact(model, images, targets):
    "The contributions to the logit."
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad * images
"""
"""Four cases: halves x (linear, steep) x (lerf, morf)."""

METHOD = """
@attrcheck.method("{name}")
def {name}(model, images, targets):
    {body}
"""

ITEMS = """
def test_case(attr_case):
    attr_case.run()
"""


def method(name, body):
    """The source of one more method."""
    return METHOD.format(name=name, body=body)
