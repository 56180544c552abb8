"""Small worlds for the classes and metrics of other libraries."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from attrcheck.contracts import Batch
from attrcheck.graph.preparing import prepare
from attrcheck.protocols.responses import responses
from tests.worlds import smooth_images

COUNT, SIDE, CLASSES = 3, 16, 3
SEEDS = (5, 2**50, 7)


def small_network(side=8):
    """Two convolutions, the second on a grid of half the side."""
    torch.manual_seed(4)
    layers = [nn.Conv2d(3, 4, 3, 1, 1), nn.ReLU(), nn.Conv2d(4, 6, 3, 2, 1), nn.ReLU()]
    network = nn.Sequential(*layers, nn.AvgPool2d(side // 2), nn.Flatten(), nn.Linear(6, 3))
    network[6].weight.data *= 30  # Lime's Lasso takes small drops for none
    return network.eval()


@pytest.fixture(scope="session")
def network_of():
    """Makes a small network for images of a side."""
    return small_network


@pytest.fixture(scope="session")
def subject():
    """A prepared network, three images of 8x8 pixels, and the classes that it sees in them."""
    model, images = prepare(small_network()), smooth_images(3, 8)
    return model, images, model(images).argmax(1)


class World:
    """A linear model, images, labels, contributions as maps, masks; and the metrics' scores."""

    def __init__(self, channels=3):
        torch.manual_seed(1)
        layer = nn.Linear(channels * SIDE * SIDE, CLASSES)
        layer.weight.data *= 3
        self.model = nn.Sequential(nn.Flatten(), layer).eval().requires_grad_(False)
        self.weight = layer.weight.view(CLASSES, channels, SIDE, SIDE)
        self.images = torch.randn(COUNT, channels, SIDE, SIDE)
        self.labels = self.model(self.images).argmax(1)
        self.masks = torch.zeros(COUNT, SIDE, SIDE, dtype=torch.bool)
        self.masks[:, 4:8, 4:8] = True
        self.maps = self.explain(self.images)
        self.asked = []

    def explain(self, images, labels=None):
        labels = self.labels if labels is None else labels
        return (self.weight[labels] * images).sum(1)

    def batch(self, order=None):
        order = list(range(COUNT)) if order is None else order
        images, labels = self.images[order], self.labels[order]

        def attribute(changed):
            assert changed.shape == images.shape
            assert changed.dtype == images.dtype
            self.asked.append(changed)
            return self.explain(changed, labels)

        return Batch(
            images=images,
            labels=labels,
            seeds=tuple(SEEDS[place] for place in order),
            intact=responses(self.model, images, labels),
            masks=self.masks[order],
            attribute=attribute,
        )

    def scores(self, protocol, maps=None, order=None, **changes):
        maps = self.maps if maps is None else maps
        batch = replace(self.batch(order), **changes)
        maps = maps if order is None else maps[order]
        return protocol.observe(self.model, batch, maps, {})["score"]


@pytest.fixture
def world():
    """Three colour images of 16x16 pixels; see `World`."""
    return World()


@pytest.fixture
def grey_world():
    """The same with one channel."""
    return World(channels=1)
