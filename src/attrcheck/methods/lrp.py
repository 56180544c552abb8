"""Layer-wise relevance propagation, epsilon-plus (Bach et al. 2015, Montavon et al. 2019).

Epsilon-plus, because plain LRP-epsilon on a ReLU network is input x gradient under another name.
Relevance takes the place of the gradient: each rule turns that of an output into that of inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.autograd import Function

from attrcheck.methods import method
from attrcheck.methods._rules import Rule, Rules, backpropagate, valued
from attrcheck.models._graph import (
    ACTIVATIONS,
    AVERAGES,
    GATES,
    MAXIMA,
    NORMS,
    SCALINGS,
    SHAPE_CALLS,
    SHAPES,
    Add,
    Multiply,
    call_name,
    module_of,
    obstacle,
)

EPSILON = 1e-6
"""Stabiliser of the epsilon rule."""
ZERO = 1e-9
"""Only guards against division by zero: shares of one sign need no stabiliser."""

Linear = Callable[[Tensor], Tensor]


class _OwnSign(Function):
    """Shares the relevance of y = up(x) + down(x) + bias among the parts that have y's sign.

    `up` has only weights >= 0 and `down` only weights <= 0.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, up: Linear, down: Linear | None, bias: Tensor
    ) -> Tensor:
        ctx.save_for_backward(x, y, bias)
        ctx.up, ctx.down = up, down
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, y, bias = ctx.saved_tensors
        up, down = ctx.up, ctx.down
        high, low = x.clamp(min=0), x.clamp(max=0)
        positive = grads[0].where(y >= 0, 0)
        relevance = _share(positive, bias.clamp(min=0), [(up, high), (down, low)])
        negative = grads[0].where(y < 0, 0)
        relevance += _share(negative, bias.clamp(max=0), [(down, high), (up, low)])
        return relevance, None, None, None, None


def _share(
    relevance: Tensor, bias: Tensor, contributions: list[tuple[Linear | None, Tensor]]
) -> Tensor:
    """Sum of part * weights^T(relevance / z), where z is the sum of weights(part), plus bias."""
    shared = torch.zeros_like(contributions[0][1])
    used = [(linear, part.detach()) for linear, part in contributions if linear and part.any()]
    if not used or not relevance.any():
        return shared
    parts = [part.requires_grad_() for _, part in used]
    with torch.enable_grad():
        z = sum((linear(part) for linear, part in used), start=bias)
    gradients = torch.autograd.grad(z, parts, relevance / _stable(z.detach(), ZERO))
    for part, gradient in zip(parts, gradients, strict=True):
        shared += part.detach() * gradient
    return shared


def _stable(z: Tensor, epsilon: float) -> Tensor:
    return z + torch.where(z < 0, -epsilon, epsilon)


def _own_sign(
    x: Tensor, y: Tensor, up: Linear, down: Linear | None = None, bias: Tensor | None = None
) -> Tensor:
    bias = y.new_zeros(()) if bias is None else bias[:, None, None]
    return _OwnSign.apply(x, y.detach(), up, down, bias)  # type: ignore[no-any-return,no-untyped-call]


def plus(module: nn.Conv2d, x: Tensor) -> Tensor:
    """z+: relevance goes to the positive contributions x+ w+ and x- w-, in proportion.

    That of a negative output, which no ReLU lets through but SiLU does, goes to the negative ones.
    """

    def part(weight: Tensor) -> Linear:
        return lambda t: module._conv_forward(t, weight, None)

    up, down = part(module.weight.clamp(min=0)), part(module.weight.clamp(max=0))
    return _own_sign(x, module(x.detach()), up, down, module.bias)


def average(module: nn.Module, x: Tensor) -> Tensor:
    """As `plus`, with equal weights."""
    return _own_sign(x, module(x.detach()), module)


def add(module: Add, a: Tensor, b: Tensor) -> Tensor:
    """As `plus`, with weights of one: operands that cancel cannot inflate each other."""
    y = module(a, b)
    return _own_sign(torch.stack([a.expand_as(y), b.expand_as(y)]), y, lambda t: t.sum(0))


def epsilon(module: nn.Linear, x: Tensor) -> Tensor:
    """Relevance goes to all contributions x w in proportion: x * W^T(R / (y +- epsilon))."""
    y = module(x.detach())
    return valued(nn.functional.linear(x * x.detach(), module.weight) / _stable(y, EPSILON), y)


def pass_on(module: nn.Module, x: Tensor) -> Tensor:
    """Relevance stays where it is."""
    return valued(x, module(x))


def multiply(module: Multiply, a: Tensor, b: Tensor) -> Tensor:
    """All goes to the signal, none to the gate; two signals get one half each.

    The gate is the sigmoid's output, else the operand that is spread over the other.
    """
    y = module(a, b)
    operands = [a, b]
    if module.gate is None:
        size = max(a.numel(), b.numel())
        signals = [t.expand_as(y) for t in operands if t.numel() == size]
    else:
        signals = [operands[1 - module.gate].expand_as(y)]
    return valued(torch.stack(signals).mean(0), y)


def scale(value: Any, *args: Any) -> Any:
    """A number or a parameter that is added or multiplied has no relevance."""
    signals = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
    return valued(signals[0].expand_as(value), value) if signals else value


PASSED = {*ACTIVATIONS, *NORMS} - {*GATES, nn.Softplus}
"""Zero at zero (norms but for their shift): what is not would get relevance for nothing."""
RULES: dict[type[nn.Module], Rule] = {
    **dict.fromkeys(PASSED, pass_on),
    **dict.fromkeys(AVERAGES, average),
    nn.Conv2d: plus,
    nn.Linear: epsilon,
    Add: add,
    Multiply: multiply,
}


def applies(model: nn.Module) -> str | None:
    """Every operation needs a rule, and a sigmoid has one only as a gate."""
    if reason := obstacle(model, (*RULES, *GATES, *MAXIMA, *SHAPES), SHAPE_CALLS):
        return reason
    assert isinstance(model, fx.GraphModule)
    for node in model.graph.nodes:
        if type(module_of(model, node)) in GATES and not _only_gates(model, node):
            return f"there is no rule for a sigmoid that is not a gate (at {node.target})"
    return None


def _only_gates(model: fx.GraphModule, node: fx.Node) -> bool:
    def gated(user: fx.Node) -> bool:
        product = module_of(model, user)
        if isinstance(product, Multiply):
            return product.gate is not None and user.args[product.gate] is node
        return call_name(user) in SHAPE_CALLS and _only_gates(model, user)

    return all(gated(user) for user in node.users)


@method("lrp", applies=applies)
def lrp(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel, summed over channels: z+ for convolutions, epsilon for linear ones.

    The map sums to the target's logit, but for what biases and norm shifts take.
    """
    rules = Rules(model, RULES, dict.fromkeys(SCALINGS, scale))
    return backpropagate(rules, images, targets, seed=lambda logits: logits).sum(1)
