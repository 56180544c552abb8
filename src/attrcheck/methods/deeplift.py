"""DeepLIFT, rescale rule, against the zero image, and DeepSHAP against images of the dataset."""

from __future__ import annotations

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.graph.kinds import (
    ACTIVATIONS,
    LINEAR,
    MAXIMA,
    PRODUCTS,
    SHAPE_CALLS,
    Multiply,
    Product,
    Unit,
)
from attrcheck.graph.nodes import obstacle
from attrcheck.methods import method
from attrcheck.methods._multipliers import MultiplierRule, Tape, multipliers
from attrcheck.methods._token_multipliers import layer_norm, product, softmax, unit
from attrcheck.methods.integrated import BACKGROUND, background
from attrcheck.tensors.batching import in_batches

TINY = 1e-5
"""Below this, relative to the values themselves, a change is rounding noise."""
NOISE = 0.1
"""Share of a logit's change that maps may miss; they are right to 1e-3 as a rule."""
FLOOR = 1e-15
"""Noise of what is zero: small, and yet its square is not zero."""


class UnboundedError(ValueError):
    """Maps that are rounding noise, as the multipliers of a network grow without bound."""


def see(module: nn.Module, *inputs: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Keep the inputs."""
    return module(*inputs), inputs


def rescale(module: nn.Module, tape: Tape, upstream: Tensor, x: Tensor) -> tuple[Tensor]:
    """(y - y0) / (x - x0) as multiplier.

    With d = x - x0 and s the slope at x0 it is ((y - y0) d + s e^2) / (d^2 + e^2), where e is the
    size of rounding noise: the slope stands in for the quotient where d is not larger than that.
    A choice between the two instead, pixel by pixel, takes longer than a convolution.
    """
    start, x = tape.starts(x), tape.ends(x)
    run = _of_pairs(module) if isinstance(module, nn.PReLU) else module
    end, slope = _tangent(run, start)
    noise = torch.addcmul(start.square(), end, end).mul_(TINY**2).add_(FLOOR**2)
    change = x - start
    multiplier = torch.addcmul(slope.mul_(noise), run(x) - end, change)
    multiplier /= torch.addcmul(noise, change, change)
    return (multiplier.mul_(upstream),)


def _of_pairs(module: nn.Module) -> Callable[[Tensor], Tensor]:
    """An activation that counts axes, of values [images, baselines, ...]."""
    return lambda x: module(x.flatten(0, 1)).view(x.shape)


def _tangent(module: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, Tensor]:
    """Value and slope of an activation."""
    if type(module) is nn.ReLU:  # most are: spare them the detour
        y = module(x)
        return y, (y > 0).to(y)
    with torch.enable_grad():
        leaf = x.detach().requires_grad_()
        y = module(leaf)
        (slope,) = torch.autograd.grad(y, leaf, torch.ones_like(y))
    return y.detach(), slope


def see_winners(
    module: nn.MaxPool2d | nn.AdaptiveMaxPool2d, x: Tensor
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Keep the input, the maxima, and where they are."""
    indexed = copy.copy(module)
    indexed.return_indices = True
    y, winners = indexed(x)
    return y, (x, y, winners)


def pool(
    module: nn.Module, tape: Tape, upstream: Tensor, x: Tensor, y: Tensor, winners: Tensor
) -> tuple[Tensor]:
    """All of y - y0 goes to x's winner where the maximum grew, to x0's winner where it fell.

    That winner changed at least as much as the maximum, so the multiplier is in [0, 1].
    """
    size = x.shape[2:]
    x, y, winners = (values.flatten(2) for values in (x, y, winners))
    grown = tape.ends(y) - tape.starts(y)
    chosen = torch.where(grown >= 0, tape.ends(winners), tape.starts(winners))
    sizes = *chosen.shape[:3], x.shape[2]
    change = tape.ends(x).expand(sizes).gather(3, chosen)
    change -= tape.starts(x).expand(sizes).gather(3, chosen)
    slope = (grown / change).masked_fill_(change == 0, 1).mul_(upstream.flatten(3))
    return (x.new_zeros(sizes).scatter_add_(3, chosen, slope).view(*sizes[:3], *size),)


def multiply(
    module: Multiply, tape: Tape, upstream: Tensor, a: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """ab - a0 b0 = (b + b0) / 2 * (a - a0) + (a + a0) / 2 * (b - b0), which loses nothing."""
    middle_a, middle_b = ((tape.ends(t) + tape.starts(t)) / 2 for t in (a, b))
    return upstream * middle_b, upstream * middle_a


RULES: dict[type[nn.Module], MultiplierRule] = {
    **dict.fromkeys(ACTIVATIONS, MultiplierRule(see, rescale)),
    **dict.fromkeys(MAXIMA, MultiplierRule(see_winners, pool)),
    Multiply: MultiplierRule(see, multiply),
    Product: MultiplierRule(see, product),
    nn.LayerNorm: MultiplierRule(see, layer_norm),
    nn.Softmax: MultiplierRule(see, softmax),
    Unit: MultiplierRule(see, unit),
}


def needs_multipliers(model: nn.Module) -> str | None:
    """Why a model has parts that are neither affine nor under a rule, or None."""
    return obstacle(model, (*LINEAR, *RULES), (*SHAPE_CALLS, *PRODUCTS))


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
            slopes, change = multipliers(model, ends, targets[rows], starts, RULES)
            maps = slopes.mul_(ends[:, None] - starts).sum(2)
            _check(maps.sum((2, 3)), change)
            return maps

        return torch.cat(list(in_batches(block, len(images) * len(starts), model, images)))

    return torch.cat(list(in_batches(from_some, len(baselines), model, images)), 1)


def _check(total: Tensor, change: Tensor) -> None:
    """Refuse maps that are rounding noise: they sum to nothing like the change of the logit.

    A layer norm whose reference has no variance, as of a black image in a network without biases,
    multiplies by 1 / sqrt(eps), and a stack of them beyond all digits.
    """
    off = (total - change).abs().max()
    if off > NOISE * (change.abs().max() + 1):
        raise UnboundedError(
            f"the multipliers of this network grow without bound: the sum of a map and the change "
            f"of the logit differ by {off:.3g}; is the input of a layer norm constant where the "
            "image is zero?"
        )


@method(
    "deeplift",
    not_applicable=needs_multipliers,
    axioms={"completeness": 1e-3, "dummy_feature": 1e-3, "symmetry": 1e-3},
    family="gradient",
    passes=(2, 1),
    reference="Shrikumar et al. 2017",
)
def deeplift(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * multiplier; the map sums to f(x) - f(0)."""
    return contributions(model, images, targets, torch.zeros_like(images[:1]))[:, 0]


@method(
    "deepshap",
    not_applicable=needs_multipliers,
    axioms={"completeness_in_mean": 1e-3},
    family="gradient",
    passes=(BACKGROUND + 1, BACKGROUND),  # a batch shares the baselines' forward passes
    reference="Lundberg and Lee 2017",
    constant="zero everywhere if the image itself is the only one of the dataset",
)
def deepshap(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """The mean of DeepLIFT's maps from each of the first 10 images of the dataset.

    The map sums to f(x) - mean of f(b).
    """
    return contributions(model, images, targets, background(dataset, images)).mean(1)
