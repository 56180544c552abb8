"""Guided backpropagation (Springenberg et al. 2014)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rules import GUIDED, backpropagate, needs_rectifiers, ruled


@method(
    "guided_backprop",
    not_applicable=needs_rectifiers,
    family="propagation",
    passes=(1, 1),
    reference="Springenberg et al. 2014",
)
def guided_backprop(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The gradient, of which every rectifying activation lets only the positive part pass.

    act'(x) * relu(upstream), for ReLU, SiLU, GELU and their like; gates keep their derivative.
    """
    return backpropagate(ruled(model, GUIDED), images, targets).sum(1)
