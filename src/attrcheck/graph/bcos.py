"""Layers of B-cos networks: linear maps whose weights follow the input (Boehle et al. 2022).

None has a bias, so a network of them is y = W(x) e(x), where e(x) is the encoded image, and W(x)
explains y exactly.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

TINY = 1e-6
"""Keeps the norm of an empty patch, and with it the derivative, away from zero."""


class Encode(nn.Module):
    """Undoes the normalisation and appends the inverse: [p, 1 - p], so that dark pixels count."""

    scale: Tensor
    shift: Tensor

    def __init__(self, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        scale = torch.tensor([*std, *(-value for value in std)])
        shift = torch.tensor([*mean, *(1 - value for value in mean)])
        # No part of the weights: they belong to the dataset.
        self.register_buffer("scale", scale.view(-1, 1, 1), persistent=False)
        self.register_buffer("shift", shift.view(-1, 1, 1), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Twice as many channels."""
        return x.repeat(1, 2, 1, 1) * self.scale + self.shift


class BcosConv2d(nn.Conv2d):
    """B-cos transform with B = 2: gain * |cos(w, x)| * w^T x for unit vectors w."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        size: int,
        stride: int = 1,
        padding: int = 0,
        gain: float = 1.0,
    ) -> None:
        super().__init__(inputs, outputs, size, stride, padding, bias=False)
        self.gain = gain

    def linear(self, x: Tensor) -> Tensor:
        """gain * w^T x of every patch."""
        norms = self.weight.square().sum((1, 2, 3), keepdim=True).sqrt()
        weight = self.gain * self.weight / norms
        return F.conv2d(x, weight, None, self.stride, self.padding)

    def cosines(self, x: Tensor, linear: Tensor) -> Tensor:
        """|cos(w, x)| of every patch: what makes the map dynamic."""
        size = self.kernel_size[0]
        squares = x.square().sum(1, keepdim=True)
        means = F.avg_pool2d(squares, size, self.stride[0], int(self.padding[0]))
        return linear.abs() / (self.gain * (means * size * size + TINY).sqrt())

    def forward(self, x: Tensor) -> Tensor:
        """The transform of every patch."""
        linear = self.linear(x)
        return linear * self.cosines(x, linear)


class UncentredNorm(nn.Module):
    """Batch norm without mean and shift: x * weight / sqrt(variance), in eval mode a constant."""

    running_var: Tensor

    def __init__(self, channels: int, eps: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.eps, self.momentum = eps, momentum

    def forward(self, x: Tensor) -> Tensor:
        """Every channel, scaled."""
        variance = self.running_var
        if self.training:
            variance = x.var((0, 2, 3), unbiased=False)
            self.running_var.lerp_(variance.detach(), self.momentum)
        return x * (self.weight / (variance + self.eps).sqrt()).view(-1, 1, 1)
