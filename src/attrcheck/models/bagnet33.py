"""The public BagNet-33: a ResNet-50 with 3x3 convolutions only where a stage begins
(Brendel and Bethge 2019).

Register it in a conftest.py, for a dataset of ImageNet's classes and normalisation:

    from pathlib import Path
    from attrcheck.models import model
    from attrcheck.models.bagnet33 import bagnet33

    @model("bagnet33", datasets="imagenet*")
    def build(dataset):
        return bagnet33(Path("bagnet33.pth.tar"))

The weights are those of github.com/wielandbrendel/bag-of-local-features-models.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from attrcheck.training.weights import fill, read_state

STAGES = ((64, 3, 2), (128, 4, 2), (256, 6, 2), (512, 3, 1))
"""Width, number of blocks and stride of each stage."""
EXPANSION = 4


class Bottleneck(nn.Module):
    """1x1, `size` x `size` and 1x1 convolution without padding: the shortcut is cropped to fit."""

    def __init__(self, inputs: int, width: int, size: int, stride: int) -> None:
        super().__init__()
        outputs = width * EXPANSION
        self.conv1, self.bn1 = _conv(inputs, width, 1)
        self.conv2, self.bn2 = _conv(width, width, size, stride)
        self.conv3, self.bn3 = _conv(width, outputs, 1)
        self.relu = nn.ReLU()
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(*_conv(inputs, outputs, 1, stride))
        # A window of three fits (n - 3) // stride + 1 times, one of one (n - 1) // stride + 1.
        self.lost = (size - 1) // stride

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, rectified after the addition."""
        inner = self.relu(self.bn1(self.conv1(x)))
        inner = self.relu(self.bn2(self.conv2(inner)))
        shortcut = x if self.downsample is None else self.downsample(x)
        if self.lost:
            shortcut = shortcut[:, :, : -self.lost, : -self.lost]
        out: Tensor = self.relu(self.bn3(self.conv3(inner)) + shortcut)
        return out


class BagNet33(nn.Module):
    """Logits are the mean of class evidence, each of 33x33 pixels, at every eighth pixel."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 1, bias=False)
        self.conv2, self.bn1 = _conv(64, 64, 3)
        self.relu = nn.ReLU()
        inputs = 64
        for number, (width, blocks, stride) in enumerate(STAGES, 1):
            stage = nn.Sequential(Bottleneck(inputs, width, 3, stride))
            inputs = width * EXPANSION
            stage.extend(Bottleneck(inputs, width, 1, 1) for _ in range(blocks - 1))
            self.add_module(f"layer{number}", stage)
        # In the original a linear layer after the mean, with which it commutes.
        self.fc = nn.Conv2d(inputs, classes, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        x = self.relu(self.bn1(self.conv2(self.conv1(x))))
        for number in range(1, len(STAGES) + 1):
            x = self.get_submodule(f"layer{number}")(x)
        logits: Tensor = self.pool(self.fc(x)).flatten(1)
        return logits


def bagnet33(weights: Path) -> nn.Module:
    """BagNet-33 with the weights in a .safetensors file or one of torch.save."""
    state = read_state(weights)
    if "fc.weight" in state:
        state["fc.weight"] = state["fc.weight"].flatten(1)[:, :, None, None]
        return fill(BagNet33(len(state["fc.weight"])), state, weights)
    return fill(BagNet33(1000), state, weights)


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> tuple[nn.Conv2d, nn.Module]:
    return nn.Conv2d(inputs, outputs, size, stride, bias=False), nn.BatchNorm2d(outputs)
