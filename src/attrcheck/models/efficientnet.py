"""EfficientNet: inverted bottlenecks with depthwise convolution, squeeze-excite gates and SiLU
(Tan and Le 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.models import model
from attrcheck.models.stems import stride


class SqueezeExcite(nn.Module):
    """Scales every channel by a gate that sees the average of all channels."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, squeezed, 1),
            nn.SiLU(),
            nn.Conv2d(squeezed, channels, 1),
            nn.Sigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        """The input times its gate."""
        gate: Tensor = self.gate(x)
        return gate * x


class MBConv(nn.Module):
    """Expand, filter each channel, gate, project; added to its input where the shapes agree."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, expansion: int = 4) -> None:
        super().__init__()
        wide = inputs * expansion
        self.residual = stride == 1 and inputs == outputs
        self.block = nn.Sequential(
            *_conv(inputs, wide, 1),
            *_conv(wide, wide, 3, stride, groups=wide),
            SqueezeExcite(wide, max(4, inputs // 4)),
            nn.Conv2d(wide, outputs, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, linear at the end."""
        out: Tensor = self.block(x)
        return out + x if self.residual else out


@model("efficientnet", embedded=True)
def efficientnet(dataset: Dataset) -> nn.Module:
    """A small EfficientNet that ends on an 8x8 map."""
    step = stride(dataset)
    return nn.Sequential(
        *_conv(dataset.channels, 16, 2 * step - 1, step),
        MBConv(16, 16, expansion=2),
        MBConv(16, 24, stride=2, expansion=3),
        MBConv(24, 40),
        MBConv(40, 40),
        MBConv(40, 40),
        *_conv(40, 128, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, dataset.classes),
    )


def _conv(
    inputs: int, outputs: int, size: int, stride: int = 1, groups: int = 1
) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        nn.SiLU(),
    )
