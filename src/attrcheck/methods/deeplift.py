"""DeepLIFT, rescale rule, against the zero image (Shrikumar et al. 2017)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rules import Rule, Rules, backpropagate, valued
from attrcheck.models._graph import ACTIVATIONS, LINEAR, MAXIMA, SHAPE_CALLS, Multiply, obstacle

TINY = 1e-5
"""Below this, relative to the values themselves, a change is rounding noise and the derivative
stands in for the quotient."""


def rescale(module: nn.Module, x: Tensor) -> Tensor:
    """(y - y0) / (x - x0) as multiplier; the last row of the batch is the baseline."""
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        y = module(leaf)
        (slope,) = torch.autograd.grad(y.sum(), leaf)
    before, after = leaf.detach(), y.detach()
    change, effect = before - before[-1:], after - after[-1:]
    size = before.abs() + before[-1:].abs() + after.abs() + after[-1:].abs()
    clear = change.abs() > TINY * size
    return valued(x * torch.where(clear, effect / change, slope), after)


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


@method("deeplift", applies=applies)
def deeplift(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * multiplier; the map sums to f(x) - f(0).

    All images share one baseline, so it runs once, as the last row of the batch.
    """

    def forward(inputs: Tensor) -> Tensor:
        return Rules(model, RULES)(torch.cat([inputs, torch.zeros_like(inputs[:1])]))[:-1]

    return (images * backpropagate(forward, images, targets)).detach().sum(1)
