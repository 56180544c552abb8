"""Vision transformer: patches as tokens, pre-norm attention blocks, a class token
(Dosovitskiy et al. 2020).

Its patches come out of four small convolutions (Xiao et al. 2021). With the original's single one
ten thousand images are too few: half way through training it got 30% of the shapes right.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.models import model
from attrcheck.models.stems import stride

WIDTH = 48
DEPTH = 3
HEADS = 4


class Attention(nn.Module):
    """Every token looks at all tokens: softmax(q k^T / sqrt(d)) v in each head, then a mix."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.scale = (width // heads) ** -0.5
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.mix = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """The tokens' new content."""
        query, key, value = (
            layer(x).unflatten(2, (self.heads, -1)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        attention = torch.softmax(query @ key.transpose(2, 3) * self.scale, -1)
        mixed: Tensor = self.mix((attention @ value).transpose(1, 2).flatten(2))
        return mixed


class Block(nn.Module):
    """Attention and an MLP, each after a layer norm and with a shortcut around it."""

    def __init__(self, width: int, heads: int, hidden: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))

    def forward(self, x: Tensor) -> Tensor:
        """The tokens, refined."""
        x = x + self.attention(self.norm1(x))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class VisionTransformer(nn.Module):
    """Patches and a class token go through attention blocks; the class token decides."""

    def __init__(self, channels: int, side: int, classes: int, step: int) -> None:
        super().__init__()
        self.patches = nn.Sequential(
            *_conv(channels, WIDTH // 2, 2 * step - 1, step),
            *_conv(WIDTH // 2, WIDTH // 2),
            *_conv(WIDTH // 2, WIDTH, step=2),
            *_conv(WIDTH, WIDTH),
        )
        self.token = nn.Parameter(torch.zeros(1, 1, WIDTH))
        tokens = (side // (2 * step)) ** 2 + 1
        self.positions = nn.Parameter(torch.randn(1, tokens, WIDTH) * 0.02)
        self.blocks = nn.Sequential(*(Block(WIDTH, HEADS, 2 * WIDTH) for _ in range(DEPTH)))
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        patches = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.token.expand(x.shape[0], -1, -1), patches], 1) + self.positions
        logits: Tensor = self.head(self.norm(self.blocks(tokens))[:, 0])
        return logits


def _conv(inputs: int, outputs: int, size: int = 3, step: int = 1) -> tuple[nn.Module, ...]:
    return (
        nn.Conv2d(inputs, outputs, size, step, size // 2, bias=False),
        nn.BatchNorm2d(outputs),
        nn.GELU(),
    )


@model("vit", embedded=True)
def vit(dataset: Dataset) -> nn.Module:
    """A small vision transformer: three blocks of four heads, and 8x8 tokens.

    A token stands for 4x4 pixels where images have 32x32, and for 8x8 where they have 64x64.
    """
    side = dataset.images.shape[2]
    return VisionTransformer(dataset.channels, side, dataset.classes, stride(dataset))
