"""Rules that carry relevance through a transformer, from a logit down to every attention.

All that arrives is passed on: relevance is conserved from layer to layer (Chefer et al. 2021).
Where the operands of a sum or the summands of a product cancel, the published quotients have poles,
and the map is made by the nearest one: on our transformer rounding alone moved it by 4%. So they
have a stabiliser here, and maps hardly depend on its size if it is well above rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn

from attrcheck.graph.kinds import LINEAR, SCALINGS, SHAPE_CALLS, Add, Product
from attrcheck.graph.landmarks import attentions
from attrcheck.graph.nodes import module_of, obstacle
from attrcheck.methods._rules import BackwardRule, valued
from attrcheck.methods.lrp_rules import PASSED, ZERO, Share, pass_on, scale, sharing

EPSILON = 0.01
"""Stabiliser of a quotient, relative to the root mean square of what it divides by."""


@sharing
def positive(module: nn.Linear, x: Tensor) -> tuple[Tensor, Share]:
    """To the positive contributions x w, in proportion, whatever sign the output has."""

    def share(relevance: Tensor) -> tuple[Tensor]:
        high, low = x.clamp(min=0), x.clamp(max=0)
        up, down = module.weight.clamp(min=0), module.weight.clamp(max=0)
        ratio = relevance / (high @ up.T + low @ down.T + ZERO)
        return (high * (ratio @ up) + low * (ratio @ down),)

    return module(x), share


def _conserved(relevance: Tensor, one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both shares, scaled in each image so that they sum to the relevance.

    Each gets the part of it that its own sum, without its sign, has in both sums.
    """
    whole, a, b = (t.flatten(1).sum(1) for t in (relevance, one, other))
    factor = whole / (a.abs() + b.abs() + ZERO)
    return one * _spread(a.sign() * factor, one), other * _spread(b.sign() * factor, other)


def _spread(values: Tensor, t: Tensor) -> Tensor:
    """Each image's own value, for all of the image."""
    return values.view(-1, *(1,) * (t.ndim - 1))


def _quotient(relevance: Tensor, y: Tensor) -> Tensor:
    """R / (y +- epsilon)."""
    size = y.flatten(1).square().mean(1).sqrt() * EPSILON + ZERO
    return relevance / (torch.copysign(_spread(size, y), y) + y)


@sharing
def add(module: Add, a: Tensor, b: Tensor) -> tuple[Tensor, Share]:
    """In proportion to the operands, then `_conserved`."""
    value = module(a, b)
    y = value.detach()

    def share(relevance: Tensor) -> tuple[Tensor, Tensor]:
        ratio = _quotient(relevance, y)
        return _conserved(relevance, a * ratio, b * ratio)

    return value, share


@sharing
def product(module: Product, a: Tensor, b: Tensor) -> tuple[Tensor, Share]:
    """In proportion to the summands of a @ b, then `_conserved`: one half to either operand."""
    value = module(a, b)
    y = value.detach()

    def share(relevance: Tensor) -> tuple[Tensor, Tensor]:
        ratio = _quotient(relevance, y)
        to_a, to_b = ratio @ b.transpose(-2, -1), a.transpose(-2, -1) @ ratio
        return _conserved(relevance, a * to_a, b * to_b)

    return value, share


def pass_through(call: Callable[..., Tensor], x: Tensor, *settings: Any) -> Tensor:
    """Relevance stays where it is."""
    return valued(x, call(x.detach(), *settings))


KINDS: dict[type[nn.Module], BackwardRule] = {
    **dict.fromkeys((*PASSED, nn.LayerNorm, nn.Softmax), pass_on),
    nn.Linear: positive,
    Add: add,
    Product: product,
}
CALLS: dict[str, BackwardRule] = {
    **dict.fromkeys(SCALINGS, scale),
    "layer_norm": pass_through,
}


def uncovered(model: fx.GraphModule) -> str | None:
    """Why relevance cannot be followed from the logits down to the first attention, or None.

    What is before that may be anything affine, since no relevance goes there.
    """
    if reason := obstacle(model, (*KINDS, *LINEAR), (*CALLS, *SHAPE_CALLS)):
        return reason
    nodes = list(model.graph.nodes)
    for node in nodes[nodes.index(attentions(model)[0]) :]:
        module = module_of(model, node)
        if module is not None and type(module) not in KINDS and type(module) in LINEAR:
            return (
                f"there is no rule for {type(module).__name__} behind attention (at {node.target})"
            )
    return None
