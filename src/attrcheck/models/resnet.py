"""ResNet: batch-normalised residual blocks, strided ones with a 1x1 projection (He et al. 2015)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.models import model
from attrcheck.models.stems import stride


class Block(nn.Module):
    """Two 3x3 convolutions around a shortcut; one ReLU module serves twice, as in torchvision."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1 or inputs != outputs:
            self.shortcut.append(nn.Conv2d(inputs, outputs, 1, stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, rectified after the addition."""
        inner = self.relu(self.bn1(self.conv1(x)))
        out: Tensor = self.relu(self.bn2(self.conv2(inner)) + self.shortcut(x))
        return out


@model("resnet", embedded=True)
def resnet(dataset: Dataset) -> nn.Module:
    """A small ResNet that ends on an 8x8 map."""
    step = stride(dataset)
    return nn.Sequential(
        nn.Conv2d(dataset.channels, 16, 2 * step - 1, step, step - 1, bias=False),
        nn.BatchNorm2d(16),
        nn.ReLU(),
        Block(16, 16),
        Block(16, 32, stride=2),
        Block(32, 32),
        Block(32, 48),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(48, dataset.classes),
    )
