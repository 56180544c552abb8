"""Layer-wise relevance propagation: epsilon-plus, gamma and epsilon; `lrp_rules` has the rules.

`lrp` is epsilon-plus, because plain LRP-epsilon on a ReLU network is input x gradient under another
name; on others, such as SiLU ones, it is not. Gamma lies between epsilon (gamma zero) and z+ (gamma
without bound).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from torch import Tensor, fx, nn

from attrcheck.graph.kinds import (
    GATES,
    MAXIMA,
    NORMS,
    RESIZES,
    SCALINGS,
    SHAPE_CALLS,
    SHAPES,
    UPSAMPLED,
    Multiply,
)
from attrcheck.graph.nodes import call_name, module_of, obstacle
from attrcheck.methods import method
from attrcheck.methods._rules import BackwardRule, backpropagate, ruled, valued
from attrcheck.methods.lrp_rules import (
    EPSILON_GAMMA,
    EPSILON_PLUS,
    PASSED,
    scale,
    stable,
    ungated,
)


def needs_lrp_rules(model: nn.Module) -> str | None:
    """Why no rule covers an operation, or None; a sigmoid has one only as a gate."""
    return lacks_rules(model)


def lacks_rules(
    model: nn.Module, kinds: Collection[type[nn.Module]] = (), calls: Collection[str] = ()
) -> str | None:
    """Why no rule covers an operation, if there also are rules for these, or None."""
    known = (*EPSILON_PLUS, *GATES, *MAXIMA, *SHAPES, *kinds)
    if reason := obstacle(model, known, (*SHAPE_CALLS, *calls)):
        return reason
    assert isinstance(model, fx.GraphModule)
    for node in model.graph.nodes:
        module = module_of(model, node)
        if isinstance(module, RESIZES) and module.mode not in UPSAMPLED:
            return f"there is no rule for weights of both signs (at {node.target})"
        if type(module) in GATES and not _only_gates(model, node):
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
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    composite: Mapping[type[nn.Module], BackwardRule],
) -> Tensor:
    """Relevance of every pixel, summed over channels: that of the target's logit, shared out."""
    rules = ruled(model, composite, dict.fromkeys(SCALINGS, scale))
    return backpropagate(rules, images, targets, seed=lambda logits: logits).sum(1)


@method(
    "lrp",
    not_applicable=needs_lrp_rules,
    axioms={"conservation_without_biases": 1e-3},
    family="propagation",
    passes=(2, 2),  # one backward is enough between ReLUs, and is all that is run there
    reference="Bach et al. 2015",
)
def lrp(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel: z+ for convolutions, epsilon for linear layers.

    The map sums to the target's logit, but for what biases and norm shifts take.
    """
    return relevance(model, images, targets, EPSILON_PLUS)


@method(
    "lrp_gamma",
    not_applicable=needs_lrp_rules,
    axioms={"conservation_without_biases": 1e-3},
    family="propagation",
    passes=(2, 2),  # one backward is enough between ReLUs, and is all that is run there
    reference="Montavon et al. 2019",
)
def lrp_gamma(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel: gamma for convolutions, epsilon for linear layers.

    The map sums to the target's logit, but for what biases and norm shifts take.
    """
    return relevance(model, images, targets, EPSILON_GAMMA)


@method(
    "lrp_epsilon",
    not_applicable=needs_lrp_rules,
    default=False,
    axioms={"conservation_without_biases": 1e-3},
    family="propagation",
    passes=(1, 1),
    reference="Bach et al. 2015",
)
def lrp_epsilon(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Relevance of every pixel: x * W^T(R / y) from layer to layer.

    Run as a gradient, R / x in place of R: W^T then is an affine layer's own backward pass, and
    only what passes relevance on as it is, such as an activation, needs a rule. The map sums to
    the target's logit, but for what biases and norm shifts take.
    """
    rules = ruled(model, EPSILON_AS_GRADIENT, dict.fromkeys(SCALINGS, scale_as_gradient))
    return (backpropagate(rules, images, targets) * images).sum(1)


def passed(x: Tensor, y: Tensor) -> Tensor:
    """y, with all its relevance at x: the derivative is y / x."""
    return valued(x * (y / stable(x)).detach(), y)


def activation_as_gradient(module: nn.Module, x: Tensor) -> Tensor:
    """All goes through; a ReLU needs no rule for that, for y / x is its derivative."""
    return passed(x, module(x))


def multiply_as_gradient(module: Multiply, a: Tensor, b: Tensor) -> Tensor:
    """All goes to the signal, none to the gate; two signals get one half each."""
    y = module(a, b)
    operands = ungated(module, a, b)
    if len(operands) == 2:
        return valued(y / 2, y)
    return a * b.detach() if operands[0] is a else a.detach() * b


def scale_as_gradient(call: Callable[..., Any], *args: Any) -> Any:
    """A number or a parameter that is added or multiplied has no relevance."""
    y = call(*args)
    known = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
    return passed(known[0], y) if known else y


EPSILON_AS_GRADIENT: dict[type[nn.Module], BackwardRule] = {
    **dict.fromkeys(PASSED - {*NORMS, nn.ReLU}, activation_as_gradient),
    Multiply: multiply_as_gradient,
}
