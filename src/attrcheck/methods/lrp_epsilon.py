"""Layer-wise relevance propagation, epsilon in every layer (Bach et al. 2015).

On a ReLU network this is input x gradient; on others, such as SiLU ones, it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from attrcheck.graph.kinds import NORMS, SCALINGS, Multiply
from attrcheck.methods import method
from attrcheck.methods._lrp import PASSED, applies, signals, stable
from attrcheck.methods._rules import Rule, backpropagate, ruled, valued


@method(
    "lrp_epsilon",
    not_applicable=applies,
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
    rules = ruled(model, RULES, dict.fromkeys(SCALINGS, scale))
    return (backpropagate(rules, images, targets) * images).sum(1)


def passed(x: Tensor, y: Tensor) -> Tensor:
    """y, with all its relevance at x: the derivative is y / x."""
    return valued(x * (y / stable(x)).detach(), y)


def activation(module: nn.Module, x: Tensor) -> Tensor:
    """All goes through; a ReLU needs no rule for that, for y / x is its derivative."""
    return passed(x, module(x))


def multiply(module: Multiply, a: Tensor, b: Tensor) -> Tensor:
    """All goes to the signal, none to the gate; two signals get one half each."""
    y = module(a, b)
    known = signals(module, a, b)
    if len(known) == 2:
        return valued(y / 2, y)
    return a * b.detach() if known[0] is a else a.detach() * b


def scale(call: Callable[..., Any], *args: Any) -> Any:
    """A number or a parameter that is added or multiplied has no relevance."""
    y = call(*args)
    known = [t for t in args if isinstance(t, Tensor) and t.requires_grad]
    return passed(known[0], y) if known else y


RULES: dict[type[nn.Module], Rule] = {
    **dict.fromkeys(PASSED - {*NORMS, nn.ReLU}, activation),
    Multiply: multiply,
}
