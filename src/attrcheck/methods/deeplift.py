"""DeepLIFT, rescale rule, against the zero image (Shrikumar et al. 2017)."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from attrcheck.memory import in_batches
from attrcheck.methods import method
from attrcheck.methods._multipliers import Rule, Sides, multipliers
from attrcheck.models._graph import ACTIVATIONS, LINEAR, MAXIMA, SHAPE_CALLS, Multiply, obstacle

TINY = 1e-5
"""Below this, relative to the values themselves, a change is rounding noise."""
FLOOR = 1e-15
"""Noise of what is zero: small, and yet its square is not zero."""


def rescale(
    module: nn.Module, upstream: Tensor, sides: Sides, y: Tensor, x: Tensor
) -> tuple[Tensor]:
    """(y - y0) / (x - x0) as multiplier.

    With d = x - x0 and s the slope at x0 it is ((y - y0) d + s e^2) / (d^2 + e^2), where e is the
    size of rounding noise: the slope stands in for the quotient where d is not larger than that.
    A choice between the two instead, pixel by pixel, takes longer than a convolution.
    """
    start, end = sides.starts(x), sides.starts(y)
    with torch.enable_grad():
        leaf = start.detach().requires_grad_()
        (slope,) = torch.autograd.grad(module(leaf).sum(), leaf)
    noise = (TINY * (start.abs() + end.abs()) + FLOOR).square_()
    change = sides.ends(x) - start
    multiplier = (sides.ends(y) - end).mul_(change).add_(slope.mul_(noise))
    multiplier /= change.square_().add_(noise)
    return (multiplier.mul_(upstream),)


def pool(
    module: nn.MaxPool2d | nn.AdaptiveMaxPool2d,
    upstream: Tensor,
    sides: Sides,
    y: Tensor,
    x: Tensor,
) -> tuple[Tensor]:
    """All of y - y0 goes to x's winner where the maximum grew, to x0's winner where it fell.

    That winner changed at least as much as the maximum, so the multiplier is in [0, 1].
    """
    indexed = copy.copy(module)
    indexed.return_indices = True
    height, width = x.shape[2:]
    y, winners, x = (values.flatten(2) for values in (*indexed(x), x))
    grown = sides.ends(y) - sides.starts(y)
    chosen = torch.where(grown >= 0, sides.ends(winners), sides.starts(winners))
    sizes = *chosen.shape[:3], x.shape[2]
    change = sides.ends(x).expand(sizes).gather(3, chosen)
    change -= sides.starts(x).expand(sizes).gather(3, chosen)
    slope = (grown / change).masked_fill_(change == 0, 1)
    found = x.new_zeros(sizes).scatter_add_(3, chosen, slope.mul_(upstream.flatten(3)))
    return (found.unflatten(3, (height, width)),)


def multiply(
    module: Multiply, upstream: Tensor, sides: Sides, y: Tensor, a: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """ab - a0 b0 = (b + b0) / 2 * (a - a0) + (a + a0) / 2 * (b - b0), which loses nothing."""
    middle_a, middle_b = ((sides.ends(t) + sides.starts(t)) / 2 for t in (a, b))
    return upstream * middle_b, upstream * middle_a


RULES: dict[type[nn.Module], Rule] = {
    **dict.fromkeys(ACTIVATIONS, rescale),
    **dict.fromkeys(MAXIMA, pool),
    Multiply: multiply,
}


def applies(model: nn.Module) -> str | None:
    """What is neither affine nor under a rule would break the sum."""
    return obstacle(model, (*LINEAR, *RULES), SHAPE_CALLS)


def contributions(model: nn.Module, images: Tensor, targets: Tensor, baselines: Tensor) -> Tensor:
    """Sum over channels of (x - x0) * multiplier, from each of the baselines: [N, B, H, W]."""

    def from_some(some: slice) -> Tensor:
        starts = baselines[some]

        def block(part: slice) -> Tensor:
            # The images whose first pair is in this part of all pairs.
            rows = slice(*(-(-place // len(starts)) for place in (part.start, part.stop)))
            ends = images[rows]
            if not len(ends):
                return images.new_zeros(0, len(starts), *images.shape[2:])
            found = multipliers(model, ends, targets[rows], starts, RULES)
            return found.mul_(ends[:, None] - starts).sum(2)

        return torch.cat(list(in_batches(block, len(images) * len(starts), model, images)))

    return torch.cat(list(in_batches(from_some, len(baselines), model, images)), 1)


@method(
    "deeplift",
    applies=applies,
    family="gradient",
    passes=(2, 1),
    reference="Shrikumar et al. 2017",
)
def deeplift(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * multiplier; the map sums to f(x) - f(0)."""
    return contributions(model, images, targets, torch.zeros_like(images[:1]))[:, 0]
