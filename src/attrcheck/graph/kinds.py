"""Kinds of module and of call that a prepared graph is made of; rules are given by kind."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Add(nn.Module):
    """a + b, made visible."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The sum."""
        return a + b


class Multiply(nn.Module):
    """a * b, made visible; `gate` is the operand (0 or 1) that only scales the other, if known."""

    def __init__(self, gate: int | None = None) -> None:
        super().__init__()
        self.gate = gate

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The product."""
        return a * b


class Product(nn.Module):
    """a @ b of two signals, made visible."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The product of matrices."""
        return torch.matmul(a, b)


class Unit(nn.Module):
    """x / |x| along an axis, made visible."""

    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x: Tensor) -> Tensor:
        """Vectors of unit length; shorter ones than eps are divided by that."""
        return F.normalize(x, dim=self.dim, eps=self.eps)


class Concat(nn.Module):
    """Concatenation, made visible."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, *parts: Tensor) -> Tensor:
        """The parts, one after the other."""
        return torch.cat(parts, self.dim)


class Crop(nn.Module):
    """A box of maps, the rest cut off; made visible."""

    def __init__(self, top: int, left: int, height: int, width: int) -> None:
        super().__init__()
        self.rows, self.columns = slice(top, top + height), slice(left, left + width)

    def forward(self, x: Tensor) -> Tensor:
        """What is inside."""
        return x[:, :, self.rows, self.columns]


class Mean(nn.Module):
    """The mean over places or tokens of each image, which is a pooling."""

    def __init__(self, dims: tuple[int, ...], keepdim: bool) -> None:
        super().__init__()
        self.dims = dims
        self.keepdim = keepdim

    def forward(self, x: Tensor) -> Tensor:
        """The mean."""
        return x.mean(self.dims, self.keepdim)


class Sum(Mean):
    """The sum over places or tokens of each image: a mean but for a factor."""

    def forward(self, x: Tensor) -> Tensor:
        """The sum."""
        return x.sum(self.dims, self.keepdim)


Kinds = tuple[type[nn.Module], ...]

RECTIFIERS: Kinds = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.CELU, nn.SELU),
    *(nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.Softplus),
)
"""Activations that let positive values through and hold back negative ones."""
GATES: Kinds = (nn.Sigmoid, nn.Hardsigmoid)
"""Activations between zero and one, never zero at zero: they scale, they carry no signal."""
ACTIVATIONS: Kinds = (*RECTIFIERS, *GATES, nn.Tanh, nn.Hardtanh, nn.Softsign)
NORMS: Kinds = (nn.BatchNorm1d, nn.BatchNorm2d)
AVERAGES: Kinds = (nn.AvgPool2d, nn.AdaptiveAvgPool2d, Mean, Sum)
RESIZES: Kinds = (nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d)
MAXIMA: Kinds = (nn.MaxPool2d, nn.AdaptiveMaxPool2d)
UPSAMPLED = ("nearest", "nearest-exact", "bilinear")
"""Ways to enlarge whose weights are never negative."""
PADS: Kinds = (nn.ZeroPad2d, nn.ConstantPad2d, nn.ReflectionPad2d, nn.ReplicationPad2d)
SHAPES: Kinds = (
    *(Concat, Crop, nn.Flatten, nn.Unflatten),
    *(nn.PixelShuffle, nn.PixelUnshuffle, nn.ChannelShuffle),
    *PADS,
)
LINEAR: Kinds = (
    *(nn.Conv2d, nn.ConvTranspose2d, nn.Linear, Add),
    *(*NORMS, *AVERAGES, *RESIZES, *SHAPES),
)
"""Kinds that are affine in eval mode."""

SHAPE_CALLS = (
    *("flatten", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "expand"),
    *("expand_as", "view_as", "contiguous", "getitem", "chunk", "split", "pad", "cat", "to"),
    *("unflatten", "unbind", "roll", "flip", "movedim", "moveaxis", "swapaxes", "swapdims"),
    *("stack", "narrow", "select", "repeat", "clone", "pixel_shuffle", "pixel_unshuffle"),
    *("channel_shuffle", "tensor_split", "broadcast_to", "float", "type_as"),
)
"""Functions and tensor methods that only move numbers about."""
SCALINGS = ("add", "sub", "neg", "mul", "multiply", "truediv", "div", "divide")
PRODUCTS = ("matmul", "bmm")
"""Of matrices; in a prepared graph, with a constant: of two signals they are a Product."""
