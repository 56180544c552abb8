"""Rules of layer-wise relevance propagation: how each kind of module shares relevance out.

Relevance takes the place of the gradient: a rule turns that of an output into that of the inputs.
A composite is a table of rules, by kind of module.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function

from attrcheck.graph.kinds import ACTIVATIONS, AVERAGES, GATES, NORMS, RESIZES, Add, Multiply
from attrcheck.methods._affine import Transposed, convolve, run, transposed
from attrcheck.methods._rules import BackwardRule, valued

EPSILON = 1e-6
"""Stabiliser of the epsilon rule."""
GAMMA = 0.25
"""How much more a contribution of the output's own sign counts under the gamma rule."""
ZERO = 1e-9
"""Only guards against division by zero: shares of one sign need no stabiliser."""

Share = Callable[[Tensor], tuple[Tensor, ...]]
"""From the relevance of an output to that of the inputs."""
Sized = Callable[[Tensor], tuple[Tensor, Transposed, Transposed]]


class _Shared(Function):
    """A module's value in the forward pass; its relevance, shared out, in the backward pass."""

    @staticmethod
    def forward(ctx: Any, rule: Any, module: nn.Module, *inputs: Tensor) -> Any:
        value, ctx.share = rule(module, *inputs)
        return value

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return None, None, *ctx.share(grads[0])


def sharing(rule: Callable[..., tuple[Tensor, Share]]) -> BackwardRule:
    """Make a rule of a function that returns a module's value, and how relevance is shared."""

    @wraps(rule)
    def ruled(module: nn.Module, *inputs: Tensor) -> Tensor:
        return _Shared.apply(rule, module, *inputs)  # type: ignore[no-any-return,no-untyped-call]

    return ruled


def _favoured(module: nn.Module, x: Tensor, sized: Sized) -> tuple[Tensor, Share]:
    """Shares relevance among the contributions c to y = Wx + b in proportion to c +- f|c|.

    The sign is y's, so that contributions of y's sign count 1 + f, the others 1 - f. `sized` gives
    m = f(|W||x| + |b|), f|W|^T and (W + f|W|)^T. With z = y +- m the relevance of x is
    x * W^T(R / z) + |x| * f|W|^T(R / |z|): two passes each way, whatever has which sign, and only
    one backward where, as between ReLUs, neither x nor a y that matters is negative. A GPU runs
    both: to ask it would be to wait for it at every layer.
    """
    value, back = run(module, x)
    y = value.detach()

    def share(relevance: Tensor) -> tuple[Tensor]:
        positive = not x.is_cuda and bool(x.min() >= 0)
        size = x if positive else x.abs()
        mass, back_of_sizes, back_of_both = sized(size)
        z = torch.copysign(mass, y).add_(y)
        ratio, ratio_of_sizes = relevance / z, relevance / z.abs_()
        if positive and torch.equal(ratio, ratio_of_sizes):
            return (back_of_both(ratio) * x,)
        return ((back(ratio) * x).addcmul_(back_of_sizes(ratio_of_sizes), size),)

    return value, share


def _convolution(module: nn.Conv2d, x: Tensor, favour: float) -> tuple[Tensor, Share]:
    def sized(size: Tensor) -> tuple[Tensor, Transposed, Transposed]:
        weight = favour * module.weight.abs()
        bias = weight.new_zeros(len(weight)) if module.bias is None else favour * module.bias.abs()
        mass, back = convolve(module, weight, bias.add_(ZERO), size)
        return mass, back, transposed(module, module.weight + weight, size)

    return _favoured(module, x, sized)


@sharing
def plus(module: nn.Conv2d, x: Tensor) -> tuple[Tensor, Share]:
    """z+: relevance goes to the positive contributions x+ w+ and x- w-, in proportion.

    That of a negative output, which no ReLU lets through but SiLU does, goes to the negative ones.
    """
    return _convolution(module, x, 1)


@sharing
def gamma(module: nn.Conv2d, x: Tensor) -> tuple[Tensor, Share]:
    """To all contributions, in proportion, those of the output's sign times 1 + gamma."""
    return _convolution(module, x, GAMMA / (2 + GAMMA))


@sharing
def average(module: nn.Module, x: Tensor) -> tuple[Tensor, Share]:
    """As `plus`, with equal weights."""

    def sized(size: Tensor) -> tuple[Tensor, Transposed, Transposed]:
        mass, back = run(module, size)
        return mass + ZERO, back, lambda upstream: 2 * back(upstream)

    return _favoured(module, x, sized)


@sharing
def add(module: Add, a: Tensor, b: Tensor) -> tuple[Tensor, Share]:
    """As `plus`, with weights of one: operands that cancel cannot inflate each other."""
    value = module(a, b)
    y = value.detach()

    def share(relevance: Tensor) -> tuple[Tensor, Tensor]:
        sign = torch.copysign(y.new_ones(()), y)
        of_a, of_b = ((t * sign).clamp_(min=0) for t in (a, b))
        ratio = relevance / (of_a + of_b).add_(ZERO)
        return of_a * ratio, of_b * ratio

    return value, share


@sharing
def epsilon(module: nn.Module, x: Tensor) -> tuple[Tensor, Share]:
    """Relevance goes to all contributions x w in proportion: x * W^T(R / (y +- epsilon)).

    For whatever is affine; the shift takes its part, and only W is in the derivative.
    """
    value, back = run(module, x)
    y = value.detach()
    return value, lambda relevance: (back(relevance / stable(y)).mul_(x),)


def stable(y: Tensor) -> Tensor:
    """y +- epsilon, the sign being y's: what may be divided by."""
    return torch.copysign(y.new_full((), EPSILON), y).add_(y)


@sharing
def pass_on(module: nn.Module, x: Tensor) -> tuple[Tensor, Share]:
    """Relevance stays where it is."""
    return module(x), lambda relevance: (relevance,)


def multiply(module: Multiply, a: Tensor, b: Tensor) -> Tensor:
    """All goes to the signal, none to the gate; two signals get one half each.

    The gate is the sigmoid's output, else the operand that is spread over the other.
    """
    y = module(a, b)
    return valued(torch.stack([t.expand_as(y) for t in ungated(module, a, b)]).mean(0), y)


def ungated(module: Multiply, a: Tensor, b: Tensor) -> list[Tensor]:
    """The operands of a product that are not its gate."""
    if module.gate is not None:
        return [(a, b)[1 - module.gate]]
    size = max(a.numel(), b.numel())
    return [t for t in (a, b) if t.numel() == size]


def scale(call: Callable[..., Any], *args: Any) -> Any:
    """A number or a parameter that is added or multiplied has no relevance."""
    value = call(*args)
    known = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
    return valued(known[0].expand_as(value), value) if known else value


PASSED = {*ACTIVATIONS, *NORMS} - {*GATES, nn.Softplus}
"""Zero at zero (norms but for their shift): what is not would get relevance for nothing."""
EPSILON_PLUS: dict[type[nn.Module], BackwardRule] = {
    **dict.fromkeys(PASSED, pass_on),
    **dict.fromkeys((*AVERAGES, *RESIZES), average),
    nn.Conv2d: plus,
    nn.Linear: epsilon,
    Add: add,
    Multiply: multiply,
}
EPSILON_GAMMA: dict[type[nn.Module], BackwardRule] = {**EPSILON_PLUS, nn.Conv2d: gamma}
