"""The plain gradient and input x gradient, with their sign and without."""

from __future__ import annotations

from captum.attr import InputXGradient, Saliency
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rules import backpropagate

OF_THE_GRADIENT = dict.fromkeys(
    ("dummy_feature", "symmetry", "implementation_invariance", "scaling"), 1e-3
)
"""Axioms that all methods here keep."""


@method(
    "gradient",
    axioms=OF_THE_GRADIENT,
    family="gradient",
    passes=(1, 1),
    reference="Baehrens et al. 2010",
)
def gradient(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of df/dx."""
    return backpropagate(model, images, targets).sum(1)


@method(
    "saliency",
    axioms=OF_THE_GRADIENT,
    family="gradient",
    passes=(1, 1),
    reference="Simonyan et al. 2013",
)
def saliency(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """|sum over channels of df/dx|: channels are summed before the sign is dropped."""
    inputs = images.detach().clone().requires_grad_()
    gradient: Tensor = Saliency(model).attribute(inputs, target=targets, abs=False)
    return gradient.detach().sum(1).abs()


@method(
    "input_x_gradient",
    axioms=OF_THE_GRADIENT,
    family="gradient",
    passes=(1, 1),
    reference="Shrikumar et al. 2016",
)
def input_x_gradient(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Sum over channels of x * df/dx."""
    inputs = images.detach().clone().requires_grad_()
    product: Tensor = InputXGradient(model).attribute(inputs, target=targets)
    return product.detach().sum(1)


@method(
    "input_x_gradient_abs",
    absolute_of="input_x_gradient",
    family="gradient",
    passes=(1, 1),
    reference="Shrikumar et al. 2016",
)
def input_x_gradient_abs(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """|map of input_x_gradient|: channels are summed before the sign is dropped."""
    return input_x_gradient(model, images, targets).abs()
