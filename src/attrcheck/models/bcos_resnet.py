"""The public B-cos ResNets (Boehle et al. 2024): B = 2, no bias, norms without centring.

Register one in a conftest.py, for a dataset of ImageNet's classes:

    from pathlib import Path
    from attrcheck.models import model
    from attrcheck.models.bcos_resnet import bcos_resnet

    @model("bcos_resnet50", datasets="imagenet*")
    def build(dataset):
        return bcos_resnet(Path("resnet_50.pth"), dataset.mean, dataset.std, depth=50)

The weights are those of github.com/B-cos/B-cos-v2. The constant that the original adds to all
logits alike is left out: no softmax sees it, and the explanation sums to the logit without it.
"""

from __future__ import annotations

from pathlib import Path

from torch import Tensor, nn

from attrcheck.graph.bcos import BcosConv2d, Encode, UncentredNorm
from attrcheck.training.weights import fill, read_state

BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
LEFT_OUT = ("running_mean", "num_batches_tracked")
"""What the original keeps of its norms and never uses."""


class Block(nn.Module):
    """B-cos convolutions of these sizes around a shortcut; the first of size 3 has the stride."""

    def __init__(self, inputs: int, width: int, outputs: int, sizes: tuple[int, ...], stride: int):
        super().__init__()
        widths = [inputs, *[width] * (len(sizes) - 1), outputs]
        strided = sizes.index(3)
        self.count = len(sizes)
        for place, size in enumerate(sizes):
            step = stride if place == strided else 1
            conv, norm = _conv(widths[place], widths[place + 1], size, step)
            self.add_module(f"conv{place + 1}", conv)
            self.add_module(f"bn{place + 1}", norm)
        self.downsample: nn.Sequential | None = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(*_conv(inputs, outputs, 1, stride))

    def forward(self, x: Tensor) -> Tensor:
        """The sum of the shortcut and what the convolutions make of the input."""
        shortcut = x if self.downsample is None else self.downsample(x)
        for number in range(1, self.count + 1):
            x = self.get_submodule(f"bn{number}")(self.get_submodule(f"conv{number}")(x))
        return x + shortcut


class BcosResNet(nn.Module):
    """A ResNet of B-cos convolutions; logits are the mean of class evidence over places."""

    def __init__(
        self, mean: tuple[float, ...], std: tuple[float, ...], depth: int, classes: int
    ) -> None:
        super().__init__()
        self.encode = Encode(mean, std)
        self.conv1, self.bn1 = _conv(2 * len(mean), 64, 7, 2)
        self.pool = nn.AvgPool2d(3, 2, 1)
        deep = depth >= 50
        sizes = (1, 3, 1) if deep else (3, 3)
        inputs = 64
        for number, blocks in enumerate(BLOCKS[depth], 1):
            width = 32 * 2**number
            outputs = 4 * width if deep else width
            strides = (1 if number == 1 else 2, *[1] * (blocks - 1))
            stage = nn.Sequential()
            for stride in strides:
                stage.append(Block(inputs, width, outputs, sizes, stride))
                inputs = outputs
            self.add_module(f"layer{number}", stage)
        self.fc = BcosConv2d(inputs, classes, 1)
        self.avgpool = nn.AdaptiveAvgPool2d(1)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, without the constant."""
        x = self.pool(self.bn1(self.conv1(self.encode(x))))
        for number in range(1, 5):
            x = self.get_submodule(f"layer{number}")(x)
        logits: Tensor = self.avgpool(self.fc(x)).flatten(1)
        return logits


def bcos_resnet(
    weights: Path, mean: tuple[float, ...], std: tuple[float, ...], depth: int = 50
) -> nn.Module:
    """A B-cos ResNet with the weights in a .safetensors file or one of torch.save.

    Its input is normalised by this mean and standard deviation, which it undoes.
    """
    state = {
        key.replace(".linear.", "."): value
        for key, value in read_state(weights).items()
        if not key.endswith(LEFT_OUT)
    }
    classes = len(state.get("fc.weight", range(1000)))
    return fill(BcosResNet(mean, std, depth, classes), state, weights)


def _conv(inputs: int, outputs: int, size: int, stride: int = 1) -> tuple[nn.Module, nn.Module]:
    return BcosConv2d(inputs, outputs, size, stride, size // 2), UncentredNorm(outputs)
