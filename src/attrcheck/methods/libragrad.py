"""LibraGrad: gradients of a transformer whose paths are balanced (Mehri et al. 2024)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.graph.kinds import Product
from attrcheck.methods import method
from attrcheck.methods._rules import BackwardRule, backpropagate, ruled, valued
from attrcheck.methods.attn_lrp import RULES, needs_transformer_rules


def weigh(module: nn.Softmax, x: Tensor) -> Tensor:
    """A constant: nothing goes back through attention to queries and keys."""
    return module(x.detach()).detach()  # type: ignore[no-any-return]


def product(module: Product, a: Tensor, b: Tensor) -> Tensor:
    """The gradient; of two signals, one half to either."""
    y = module(a, b)
    return valued(y / 2, y) if a.requires_grad and b.requires_grad else y


BALANCED: dict[type[nn.Module], BackwardRule] = {**RULES, nn.Softmax: weigh, Product: product}


@method(
    "libragrad",
    default=False,
    not_applicable=needs_transformer_rules,
    axioms={"dummy_feature": 1e-3, "symmetry": 1e-3, "scaling": 1e-3},
    family="transformer",
    passes=(1, 1),
    reference="Mehri et al. 2024",
)
def libragrad(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * df/dx, with constants for what only scales a signal.

    These are attention weights, the deviations of layer norms, gates, and y / x of activations y.
    Then what the image and all that is added (biases, class token, positions) contribute sums to
    the logit, as it does for a ReLU network.
    """
    return (backpropagate(ruled(model, BALANCED), images, targets) * images).sum(1)
