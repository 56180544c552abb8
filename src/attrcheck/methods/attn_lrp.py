"""AttnLRP: layer-wise relevance propagation for transformers (Achtibat et al. 2024)."""

from __future__ import annotations

import torch
from torch import Tensor, fx, nn

from attrcheck.graph.kinds import PRODUCTS, Multiply, Product, Unit
from attrcheck.graph.nodes import module_of
from attrcheck.methods import method
from attrcheck.methods._rules import BackwardRule, backpropagate, ruled, valued
from attrcheck.methods.lrp import EPSILON_AS_GRADIENT, lacks_rules, multiply_as_gradient


def activate(module: nn.Module, x: Tensor) -> Tensor:
    """All goes through: the derivative is y / x, without a stabiliser, for it has no pole."""
    y = module(x.detach())
    return valued(x * torch.where(x == 0, 0, y / x).detach(), y)


def normalise(module: nn.LayerNorm, x: Tensor) -> Tensor:
    """(x - mean) / s * w + b with s as a constant: the quotient passes relevance on as it is."""
    axes = tuple(range(-len(module.normalized_shape), 0))
    centred = x - x.mean(axes, keepdim=True)
    deviation = (centred.detach().square().mean(axes, keepdim=True) + module.eps).sqrt()
    path = centred / deviation
    return valued(path if module.weight is None else path * module.weight, module(x.detach()))


def unit(module: Unit, x: Tensor) -> Tensor:
    """x / |x| with the length as a constant, as in a norm."""
    length = x.detach().norm(dim=module.dim, keepdim=True).clamp(min=module.eps)
    return valued(x / length, module(x.detach()))


def product(module: Product, a: Tensor, b: Tensor) -> Tensor:
    """One half of the relevance to either operand, in proportion to the summands."""
    y = module(a, b)
    return valued(y / 2, y)


RULES: dict[type[nn.Module], BackwardRule] = {
    **dict.fromkeys(EPSILON_AS_GRADIENT, activate),
    Multiply: multiply_as_gradient,
    nn.LayerNorm: normalise,
    Unit: unit,
    Product: product,
}
PARTS = (nn.LayerNorm, Unit, nn.Softmax, Product)
"""Of a transformer; the derivative of a softmax needs no rule."""


def needs_transformer_rules(model: nn.Module) -> str | None:
    """Why no rule covers an operation, or why `lrp_epsilon` is the same, or None."""
    if reason := lacks_rules(model, PARTS, PRODUCTS):
        return reason
    assert isinstance(model, fx.GraphModule)
    if not any(isinstance(module_of(model, node), PARTS) for node in model.graph.nodes):
        return "without attention and layer norms it is lrp_epsilon"
    return None


@method(
    "attn_lrp",
    not_applicable=needs_transformer_rules,
    axioms={"dummy_feature": 1e-3, "symmetry": 1e-3},
    family="transformer",
    passes=(1, 1),
    reference="Achtibat et al. 2024",
)
def attn_lrp(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel: epsilon for layers, a half to either factor, Taylor for softmax.

    Run as a gradient, R / x in place of R: then softmax(x), expanded at x, is its own derivative,
    layer norms have constant deviations, and activations y the slope y / x. The map sums to the
    target's logit, but for what is added (biases, class token, positions), and for what the
    expansions of softmax leave: y - y' x.
    """
    return (backpropagate(ruled(model, RULES), images, targets) * images).sum(1)
