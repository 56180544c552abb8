"""Input x gradient (Shrikumar et al. 2016)."""

from __future__ import annotations

from captum.attr import InputXGradient
from torch import Tensor, nn

from attrcheck.methods import method


@method(
    "input_x_gradient",
    axioms={"dummy_feature": 1e-3, "symmetry": 1e-3, "implementation_invariance": 1e-3},
    family="gradient",
    passes=(1, 1),
    reference="Shrikumar et al. 2016",
)
def input_x_gradient(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * df/dx."""
    inputs = images.detach().clone().requires_grad_()
    product: Tensor = InputXGradient(model).attribute(inputs, target=targets)
    return product.detach().sum(1)
