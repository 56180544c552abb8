"""Affine modules y = Wx + b: their value, and what W^T makes of what comes back to them.

For layers with weights W^T is called directly: a backward pass of autograd inside another one
costs as much as a small convolution.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

_BACKWARD = torch.ops.aten.convolution_backward.default
Transposed = Callable[[Tensor], Tensor]


def direct(module: nn.Module, weight: Any, shape: torch.Size) -> Transposed | None:
    """W^T of a layer with this weight, for inputs of this shape; None for other modules."""
    if type(module) is nn.Linear:
        return lambda upstream: upstream @ weight
    if type(module) is nn.Conv2d and module.padding_mode == "zeros" and module.padding != "same":
        padding = (0, 0) if module.padding == "valid" else module.padding
        forward = module.stride, padding, module.dilation, False, (0, 0), module.groups

        def back(upstream: Tensor) -> Any:
            like = upstream.new_empty(()).expand(shape)
            return _BACKWARD(upstream, like, weight, None, *forward, (True, False, False))[0]

        return back
    return None


def run(module: nn.Module, x: Tensor) -> tuple[Tensor, Transposed]:
    """The value at x, and W^T."""
    if back := direct(module, getattr(module, "weight", None), x.shape):
        return module(x), back
    return _by_autograd(module, x)


def convolve(
    module: nn.Conv2d, weight: Tensor, bias: Tensor | None, x: Tensor
) -> tuple[Tensor, Transposed]:
    """As `run`, with other weights."""
    back = direct(module, weight, x.shape)
    if back:
        return module._conv_forward(x, weight, bias), back
    return _by_autograd(lambda t: module._conv_forward(t, weight, bias), x)


def transposed(module: nn.Conv2d, weight: Tensor, x: Tensor) -> Transposed:
    """W^T with other weights, for inputs like x."""
    return direct(module, weight, x.shape) or convolve(module, weight, None, x)[1]


def _by_autograd(call: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Transposed]:
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        y = call(leaf)
    return y.detach(), lambda upstream: torch.autograd.grad(y, leaf, upstream)[0]
