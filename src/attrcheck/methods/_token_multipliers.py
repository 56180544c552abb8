"""DeepLIFT's multipliers at the parts of a transformer: layer norm, softmax and matrix products.

Each is taken apart into sums, products of two, and functions of one number; the rescale rule and
the rule for products lose nothing at any of these, so nothing is lost in all. Written out, no
quotient of two differences is left, and none can be of rounding noise alone.
"""

from __future__ import annotations

from math import prod

import torch
from torch import Tensor, nn

from attrcheck.graph.kinds import Product, Unit
from attrcheck.methods._multipliers import Tape


def layer_norm(module: nn.LayerNorm, tape: Tape, upstream: Tensor, x: Tensor) -> tuple[Tensor]:
    """Of y = c r w + b, where c = x - mean of x, and r = 1 / s, s = sqrt(mean of c^2 + eps).

    r - r0 = -(s^2 - s0^2) / (s s0 (s + s0)), and c^2 - c0^2 = (c + c0) (c - c0).
    """
    axes = tuple(range(-len(module.normalized_shape), 0))
    c = x - x.mean(axes, keepdim=True)
    s = (c.square().mean(axes, keepdim=True) + module.eps).sqrt()
    (c, c0), (s, s0) = ((tape.ends(t), tape.starts(t)) for t in (c, s))
    if module.weight is not None:
        upstream = upstream * module.weight
    middle = (c + c0) / 2
    of_r = (upstream * middle).sum(axes, keepdim=True)
    of_squares = -of_r / (s * s0 * (s + s0))
    of_c = upstream * (1 / s + 1 / s0) / 2 + of_squares * middle * (
        2 / prod(module.normalized_shape)
    )
    return (of_c - of_c.mean(axes, keepdim=True),)


def unit(module: Unit, tape: Tape, upstream: Tensor, x: Tensor) -> tuple[Tensor]:
    """Of y = x / s, s = |x|: 1 / s - 1 / s0 = -(s^2 - s0^2) / (s s0 (s + s0)), as in a norm."""
    dim = module.dim if module.dim < 0 else module.dim - x.ndim
    s = x.norm(dim=dim, keepdim=True).clamp(min=module.eps)
    (x, x0), (s, s0) = ((tape.ends(t), tape.starts(t)) for t in (x, s))
    middle = (x + x0) / 2
    of_squares = -(upstream * middle).sum(dim, keepdim=True) / (s * s0 * (s + s0))
    return (upstream * (1 / s + 1 / s0) / 2 + of_squares * middle * 2,)


def softmax(module: nn.Softmax, tape: Tape, upstream: Tensor, x: Tensor) -> tuple[Tensor]:
    """Of y = exp(x - l), l = log of the sum of exp(x).

    The multiplier of exp between two points is their logarithmic mean, that of the logarithm one
    over it.
    """
    assert module.dim is not None
    dim = module.dim if module.dim < 0 else module.dim - x.ndim
    total = x.logsumexp(dim, keepdim=True)
    (x, x0), (total, total0) = ((tape.ends(t), tape.starts(t)) for t in (x, total))
    top = torch.maximum(total, total0)
    of_total = _between(x - top, x0 - top) / _between(total - top, total0 - top)
    of_rest = upstream * _between(x - total, x0 - total0)
    return (of_rest - of_total * of_rest.sum(dim, keepdim=True),)


def _between(a: Tensor, b: Tensor) -> Tensor:
    """(exp(a) - exp(b)) / (a - b), and exp(a) where both are the same."""
    apart = (a - b).abs()
    # exp(max) (1 - exp(-d)) / d, which no rounding harms.
    share = torch.where(apart > 0, -torch.expm1(-apart) / apart, 1)
    return torch.maximum(a, b).exp() * share


def product(
    module: Product, tape: Tape, upstream: Tensor, a: Tensor, b: Tensor
) -> tuple[Tensor, Tensor]:
    """a b - a0 b0 = (a - a0) (b + b0) / 2 + (a + a0) / 2 (b - b0), of matrices."""
    middle_a, middle_b = ((tape.ends(t) + tape.starts(t)) / 2 for t in (a, b))
    return upstream @ middle_b.transpose(-2, -1), middle_a.transpose(-2, -1) @ upstream
