"""BagNet: the mean over small patches, each classified by itself (Brendel and Bethge 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.models import model
from attrcheck.models.stems import stride


class Bottleneck(nn.Module):
    """1x1, `size` x `size` and 1x1 convolution around a shortcut; only `size` = 3 sees further."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1) -> None:
        super().__init__()
        narrow = outputs // 2
        self.branch = nn.Sequential(
            *_conv(inputs, narrow, 1),
            nn.ReLU(),
            *_conv(narrow, narrow, size, stride),
            nn.ReLU(),
            *_conv(narrow, outputs, 1),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut.extend(_conv(inputs, outputs, 1, stride))
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, rectified after the addition."""
        out: Tensor = self.relu(self.branch(x) + self.shortcut(x))
        return out


@model("bagnet", embedded=True)
def bagnet(dataset: Dataset) -> nn.Module:
    """A small BagNet: logits are the mean over an 8x8 map of evidence.

    Each is of 17x17 pixels where images have 32x32, and of 33x33 where they have 64x64.
    """
    step = stride(dataset)
    return nn.Sequential(
        *_conv(dataset.channels, 32, 2 * step + 1, step),
        nn.ReLU(),
        Bottleneck(32, 64, 3, stride=2),
        Bottleneck(64, 96, 1),
        Bottleneck(96, 128, 3),
        nn.Conv2d(128, dataset.classes, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    return (
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False),
        nn.BatchNorm2d(outputs),
    )
