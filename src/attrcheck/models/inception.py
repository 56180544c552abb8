"""Inception: parallel branches of several widths, concatenated (Szegedy et al. 2014, 2015)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.models import model
from attrcheck.models.stems import stride


class Mix(nn.Module):
    """Four branches side by side: 1x1, 3x3, double 3x3 and a projected pool, `width` of each."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.point = _conv(inputs, width, 1)
        self.single = nn.Sequential(_conv(inputs, width, 1), _conv(width, width, 3))
        self.stacked = nn.Sequential(
            _conv(inputs, width, 1), _conv(width, width, 3), _conv(width, width, 3)
        )
        self.pool = nn.Sequential(nn.AvgPool2d(3, 1, 1), _conv(inputs, width, 1))

    def forward(self, x: Tensor) -> Tensor:
        """The branches' outputs, one after the other along the channels."""
        return torch.cat([self.point(x), self.single(x), self.stacked(x), self.pool(x)], 1)


@model("inception", embedded=True)
def inception(dataset: Dataset) -> nn.Module:
    """A small Inception that ends on an 8x8 map."""
    step = stride(dataset)
    return nn.Sequential(
        _conv(dataset.channels, 16, 2 * step - 1, step),
        Mix(16, 8),
        nn.MaxPool2d(2),
        Mix(32, 24),
        Mix(96, 32),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, dataset.classes),
    )


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    )
