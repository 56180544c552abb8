"""Rules of layer-wise relevance propagation, and the pass that applies them.

Relevance takes the place of the gradient: each rule turns that of an output into that of inputs.
A composite is a table of rules, by kind of module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.autograd import Function

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
GAMMA = 0.25
"""How much more a contribution of the output's own sign counts under the gamma rule."""
ZERO = 1e-9
"""Only guards against division by zero: shares of one sign need no stabiliser."""

Linear = Callable[[Tensor], Tensor]
Halves = tuple[Tensor, Tensor]


class _OwnSign(Function):
    """Shares the relevance of y among contributions of which those of y's sign are favoured.

    `up` has the weights that favour what is positive, `down` those that favour what is negative;
    a negative input swaps them. `biases` are the shifts of both, in the same order.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, up: Linear, down: Linear | None, biases: Halves
    ) -> Tensor:
        ctx.save_for_backward(x, y, *biases)
        ctx.up, ctx.down = up, down
        return y.view_as(y)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        x, y, raised, lowered = ctx.saved_tensors
        up, down = ctx.up, ctx.down
        high, low = x.clamp(min=0), x.clamp(max=0)
        positive = grads[0].where(y >= 0, 0)
        relevance = _share(positive, raised, [(up, high), (down, low)])
        negative = grads[0].where(y < 0, 0)
        relevance += _share(negative, lowered, [(down, high), (up, low)])
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


def _halves(t: Tensor) -> Halves:
    """What is positive, and what is negative."""
    return t.clamp(min=0), t.clamp(max=0)


def _emphasised(t: Tensor) -> Halves:
    """All, with what is positive, or what is negative, once more times gamma."""
    return t + GAMMA * t.clamp(min=0), t + GAMMA * t.clamp(max=0)


def _own_sign(
    x: Tensor, y: Tensor, up: Linear, down: Linear | None = None, biases: Halves | None = None
) -> Tensor:
    zero = y.new_zeros(())
    return _OwnSign.apply(x, y.detach(), up, down, biases or (zero, zero))  # type: ignore[no-any-return,no-untyped-call]


def _convolution(module: nn.Conv2d, x: Tensor, split: Callable[[Tensor], Halves]) -> Tensor:
    def part(weight: Tensor) -> Linear:
        return lambda t: module._conv_forward(t, weight, None)

    y = module(x.detach())
    bias = y.new_zeros(1) if module.bias is None else module.bias
    up, down = split(module.weight)
    return _own_sign(x, y, part(up), part(down), split(bias[:, None, None]))


def plus(module: nn.Conv2d, x: Tensor) -> Tensor:
    """z+: relevance goes to the positive contributions x+ w+ and x- w-, in proportion.

    That of a negative output, which no ReLU lets through but SiLU does, goes to the negative ones.
    """
    return _convolution(module, x, _halves)


def gamma(module: nn.Conv2d, x: Tensor) -> Tensor:
    """To all contributions, in proportion, those of the output's sign times 1 + gamma."""
    return _convolution(module, x, _emphasised)


def average(module: nn.Module, x: Tensor) -> Tensor:
    """As `plus`, with equal weights."""
    return _own_sign(x, module(x.detach()), module)


def add(module: Add, a: Tensor, b: Tensor) -> Tensor:
    """As `plus`, with weights of one: operands that cancel cannot inflate each other."""
    y = module(a, b)
    return _own_sign(torch.stack([a.expand_as(y), b.expand_as(y)]), y, lambda t: t.sum(0))


def epsilon(module: nn.Module, x: Tensor) -> Tensor:
    """Relevance goes to all contributions x w in proportion: x * W^T(R / (y +- epsilon)).

    For whatever is affine; the shift takes its part, and only W is in the derivative.
    """
    y = module(x.detach())
    return valued(module(x * x.detach()) / _stable(y, EPSILON), y)


def epsilon_add(module: Add, a: Tensor, b: Tensor) -> Tensor:
    """As `epsilon`, with weights of one."""
    y = module(a, b).detach()
    return valued((a * a.detach() + b * b.detach()) / _stable(y, EPSILON), y)


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
EPSILON_PLUS: dict[type[nn.Module], Rule] = {
    **dict.fromkeys(PASSED, pass_on),
    **dict.fromkeys(AVERAGES, average),
    nn.Conv2d: plus,
    nn.Linear: epsilon,
    Add: add,
    Multiply: multiply,
}
EPSILON_GAMMA: dict[type[nn.Module], Rule] = {**EPSILON_PLUS, nn.Conv2d: gamma}
EPSILON_ONLY: dict[type[nn.Module], Rule] = {
    **EPSILON_PLUS,
    **dict.fromkeys((*AVERAGES, *NORMS, nn.Conv2d), epsilon),
    Add: epsilon_add,
}
"""On a ReLU network this is input x gradient, but for epsilon."""


def applies(model: nn.Module) -> str | None:
    """Every operation needs a rule, and a sigmoid has one only as a gate."""
    if reason := obstacle(model, (*EPSILON_PLUS, *GATES, *MAXIMA, *SHAPES), SHAPE_CALLS):
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


def relevance(
    model: nn.Module, images: Tensor, targets: Tensor, composite: Mapping[type[nn.Module], Rule]
) -> Tensor:
    """Relevance of every pixel, summed over channels: that of the target's logit, shared out."""
    rules = Rules(model, composite, dict.fromkeys(SCALINGS, scale))
    return backpropagate(rules, images, targets, seed=lambda logits: logits).sum(1)
