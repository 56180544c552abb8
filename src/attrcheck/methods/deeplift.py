"""DeepLIFT, rescale rule, against the zero image (Shrikumar et al. 2017)."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from attrcheck.methods import method
from attrcheck.methods._rules import Rule, Rules, backpropagate, valued
from attrcheck.models._graph import ACTIVATIONS, LINEAR, MAXIMA, SHAPE_CALLS, Multiply, obstacle

TINY = 1e-5
"""Below this, relative to the values themselves, a change is rounding noise."""
FLOOR = 1e-15
"""Noise of what is zero: small, and yet its square is not zero."""


class _Scaled(Function):
    """y in the forward pass, the multiplier in the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, multiplier: Tensor) -> Tensor:
        ctx.save_for_backward(multiplier)
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0] * ctx.saved_tensors[0], None, None


def rescale(module: nn.Module, x: Tensor) -> Tensor:
    """(y - y0) / (x - x0) as multiplier; the last row of the batch is the baseline.

    With d = x - x0 and s the slope at x0 it is ((y - y0) d + s e^2) / (d^2 + e^2), where e is the
    size of rounding noise: the slope stands in for the quotient where d is not larger than that.
    A choice between the two instead, pixel by pixel, takes longer than a convolution.
    """
    with torch.enable_grad():
        start = x[-1:].detach().requires_grad_()
        end = module(start)
        (slope,) = torch.autograd.grad(end.sum(), start)
    start, end = start.detach(), end.detach()
    noise = (TINY * (start.abs() + end.abs()) + FLOOR).square_()
    before = x.detach()
    after = module(before)
    change = before - start
    multiplier = (after - end).mul_(change).add_(slope * noise)
    multiplier /= change.square_().add_(noise)
    return _Scaled.apply(x, after, multiplier)  # type: ignore[no-any-return,no-untyped-call]


def pool(module: nn.MaxPool2d | nn.AdaptiveMaxPool2d, x: Tensor) -> Tensor:
    """All of y - y0 goes to x's winner where the maximum grew, to x0's winner where it fell.

    That winner changed at least as much as the maximum, so the multiplier is in [0, 1].
    """
    indexed = copy.copy(module)
    indexed.return_indices = True
    y, winners = indexed(x.detach())
    grew = y >= y[-1:]
    winners = torch.where(grew, winners, winners[-1:]).flatten(2)
    change = (x - x[-1:]).detach().flatten(2).gather(2, winners).view_as(y)
    slope = torch.where(change == 0, 1, (y - y[-1:]) / change)
    return valued(x.flatten(2).gather(2, winners).view_as(y) * slope, y)


def multiply(module: Multiply, a: Tensor, b: Tensor) -> Tensor:
    """ab - a0 b0 = (b + b0) / 2 * (a - a0) + (a + a0) / 2 * (b - b0), which loses nothing."""
    middle_a, middle_b = ((t + t[-1:]).detach() / 2 for t in (a, b))
    return valued(a * middle_b + b * middle_a, module(a, b))


RULES: dict[type[nn.Module], Rule] = {
    **dict.fromkeys(ACTIVATIONS, rescale),
    **dict.fromkeys(MAXIMA, pool),
    Multiply: multiply,
}


def applies(model: nn.Module) -> str | None:
    """What is neither affine nor under a rule would break the sum."""
    return obstacle(model, (*LINEAR, *RULES), SHAPE_CALLS)


def contributions(model: nn.Module, images: Tensor, targets: Tensor, baseline: Tensor) -> Tensor:
    """Sum over channels of (x - x0) * multiplier, for images that share a baseline [1, C, H, W].

    So the baseline runs once, as the last row of the batch. Changing places with it changes the
    sign, and nothing else: all rules are symmetric.
    """

    def forward(inputs: Tensor) -> Tensor:
        return Rules(model, RULES)(torch.cat([inputs, baseline]))[:-1]

    return ((images - baseline) * backpropagate(forward, images, targets)).detach().sum(1)


@method(
    "deeplift",
    applies=applies,
    family="gradient",
    passes=(2, 1),
    reference="Shrikumar et al. 2017",
)
def deeplift(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * multiplier; the map sums to f(x) - f(0)."""
    return contributions(model, images, targets, torch.zeros_like(images[:1]))
