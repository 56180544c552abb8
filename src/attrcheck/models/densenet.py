"""DenseNet: every layer sees the outputs of all layers before it (Huang et al. 2016)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.models import model
from attrcheck.models.stems import stride

GROWTH = 12


class Layer(nn.Module):
    """Batch norm, ReLU, convolution, twice; its few new channels are appended to its input."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.new = nn.Sequential(
            *_preactivated(inputs, 4 * GROWTH, 1), *_preactivated(4 * GROWTH, GROWTH, 3)
        )

    def forward(self, x: Tensor) -> Tensor:
        """The input, followed by the new channels."""
        return torch.cat([x, self.new(x)], 1)


class DenseNet(nn.Module):
    """Dense blocks with average-pooling transitions; the last ReLU is a function, as usual."""

    def __init__(
        self, channels: int, classes: int, step: int, stem: int, blocks: tuple[int, ...]
    ) -> None:
        super().__init__()
        first = nn.Conv2d(channels, stem, 2 * step - 1, step, step - 1, bias=False)
        self.features = nn.Sequential(first)
        width = stem
        for number, layers in enumerate(blocks):
            if number:
                self.features.extend([*_preactivated(width, width // 2, 1), nn.AvgPool2d(2)])
                width //= 2
            self.features.extend(Layer(width + GROWTH * i) for i in range(layers))
            width += GROWTH * layers
        self.features.append(nn.BatchNorm2d(width))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classifier = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        pooled = self.pool(F.relu(self.features(x)))
        logits: Tensor = self.classifier(torch.flatten(pooled, 1))
        return logits


@model("densenet", embedded=True)
def densenet(dataset: Dataset) -> nn.Module:
    """A small DenseNet that ends on an 8x8 map."""
    return DenseNet(dataset.channels, dataset.classes, stride(dataset), stem=24, blocks=(2, 7))


def _preactivated(inputs: int, outputs: int, size: int) -> tuple[nn.Module, ...]:
    return (
        nn.BatchNorm2d(inputs),
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, size, padding=size // 2, bias=False),
    )
