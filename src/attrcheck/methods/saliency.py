"""Saliency: the absolute gradient (Simonyan et al. 2013)."""

from __future__ import annotations

from captum.attr import Saliency
from torch import Tensor, nn

from attrcheck.methods import method


@method(
    "saliency",
    axioms={"dummy_feature": 1e-3, "symmetry": 1e-3, "implementation_invariance": 1e-3},
    family="gradient",
    passes=(1, 1),
    reference="Simonyan et al. 2013",
)
def saliency(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """|sum over channels of df/dx|: channels are summed before the sign is dropped."""
    inputs = images.detach().clone().requires_grad_()
    gradient: Tensor = Saliency(model).attribute(inputs, target=targets, abs=False)
    return gradient.detach().sum(1).abs()
