"""Random small networks, and images for them: the scenes in which laws of methods are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.graph.bcos import BcosConv2d, Encode
from attrcheck.models.vit import Block

General: TypeAlias = Literal["plain", "residual", "attention"]
Special: TypeAlias = Literal["bcos", "patches"]
Kind: TypeAlias = General | Special
KINDS: tuple[General, ...] = get_args(General)
SPECIAL: tuple[Special, ...] = get_args(Special)
"""For methods that suit none of the others: networks that explain themselves."""
SIDE, CHANNELS, CLASSES, WIDTH, PATCH = 12, 3, 3, 8, 3
MEAN, STD = (0.5,) * CHANNELS, (0.25,) * CHANNELS


@dataclass(frozen=True)
class Network:
    """A network with random weights, and `count` images of noise, 12 pixels wide.

    plain: convolutions, each with a batch norm and a ReLU, the first with a maximum over 2x2 places
    behind it. residual: the same with shortcuts. attention: patches of 3x3 pixels and a class
    token. bcos: B-cos transforms of the encoded image. patches: logits are the mean of what is
    found in each patch, as in a BagNet. depth: convolutions or blocks.
    """

    kind: Kind = "plain"
    depth: int = 1
    seed: int = 0
    count: int = 1

    def build(self) -> nn.Module:
        """The network, in eval mode."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            network = self._network()
            for part in network.modules():
                if isinstance(part, nn.BatchNorm2d):
                    assert part.running_mean is not None
                    part.running_mean.normal_(0, 0.3)
        return network.eval().requires_grad_(False)

    def _network(self) -> nn.Module:
        if self.kind == "attention":
            return Tokens(self.depth)
        if self.kind == "bcos":
            return self._bcos()
        return self._patches() if self.kind == "patches" else self._convolutions()

    def _bcos(self) -> nn.Module:
        widths = [2 * CHANNELS, *[WIDTH] * self.depth]
        parts = (BcosConv2d(inputs, WIDTH, 3, 1, 1) for inputs in widths[:-1])
        end = (BcosConv2d(WIDTH, CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        return nn.Sequential(Encode(MEAN, STD), *parts, *end)

    def _patches(self) -> nn.Module:
        parts = (_convolution(inputs) for inputs in (CHANNELS, *[WIDTH] * (self.depth - 1)))
        end = (nn.Conv2d(WIDTH, CLASSES, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        return nn.Sequential(*parts, *end)

    def _convolutions(self) -> nn.Module:
        first = _convolution(CHANNELS)
        rest = (_convolution(WIDTH) for _ in range(self.depth - 1))
        inner = [Shortcut(part) if self.kind == "residual" else part for part in rest]
        end = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, CLASSES))
        return nn.Sequential(first, nn.MaxPool2d(2), *inner, *end)

    def data(self) -> Dataset:
        """Images of noise, each with a label of its own choice."""
        generator = torch.Generator().manual_seed(self.seed)
        images = torch.rand(self.count, CHANNELS, SIDE, SIDE, generator=generator)
        labels = torch.randint(CLASSES, (self.count,), generator=generator)
        ids = tuple(f"noise/{at}" for at in range(self.count))
        return Dataset("noise", images, labels, CLASSES, MEAN, STD, ids)


class Shortcut(nn.Module):
    """What goes in is added to what comes out."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        """The sum."""
        out: Tensor = x + self.inner(x)
        return out


class Tokens(nn.Module):
    """A small vision transformer."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.patches = nn.Conv2d(CHANNELS, WIDTH, PATCH, PATCH)
        self.token = nn.Parameter(torch.randn(1, 1, WIDTH))
        self.positions = nn.Parameter(torch.randn(1, (SIDE // PATCH) ** 2 + 1, WIDTH))
        self.blocks = nn.Sequential(*(Block(WIDTH, 2, 2 * WIDTH) for _ in range(depth)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        """Logits, from the class token."""
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1) + self.positions
        logits: Tensor = self.head(self.norm(self.blocks(tokens))[:, 0])
        return logits


def _convolution(inputs: int) -> nn.Sequential:
    convolution = nn.Conv2d(inputs, WIDTH, 3, padding=1)
    nn.init.kaiming_normal_(convolution.weight)
    return nn.Sequential(convolution, nn.BatchNorm2d(WIDTH), nn.ReLU())
