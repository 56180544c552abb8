"""The gradient with its sign (Baehrens et al. 2010)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rules import backpropagate


@method(
    "gradient",
    axioms={"dummy_feature": 1e-3, "symmetry": 1e-3, "implementation_invariance": 1e-3},
    family="gradient",
    passes=(1, 1),
    reference="Baehrens et al. 2010",
)
def gradient(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of df/dx."""
    return backpropagate(model, images, targets).sum(1)
