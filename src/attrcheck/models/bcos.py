"""B-cos network: no bias, no rectifier; training aligns its weights with their inputs
(Boehle et al. 2022; with the norm of Boehle et al. 2024)."""

from __future__ import annotations

from torch import nn

from attrcheck.contracts import Dataset
from attrcheck.graph.bcos import BcosConv2d, Encode, UncentredNorm
from attrcheck.models import model
from attrcheck.models.stems import stride

GAIN = 10.0
"""Of the logits: without it a softmax of cosines stays flat."""


@model("bcos", embedded=True)
def bcos(dataset: Dataset) -> nn.Module:
    """A small B-cos network: class evidence on an 8x8 map, and its mean as logits."""
    step = stride(dataset)
    return nn.Sequential(
        Encode(dataset.mean, dataset.std),
        *_conv(2 * dataset.channels, 32, 2 * step + 1, step),
        *_conv(32, 48, 3),
        *_conv(48, 48, 3, stride=2),
        *_conv(48, 64, 3),
        BcosConv2d(64, dataset.classes, 1, gain=GAIN),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    return BcosConv2d(inputs, outputs, size, stride, size // 2), UncentredNorm(outputs)
