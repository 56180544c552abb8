"""Deconvolution (Zeiler and Fergus 2013)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rules import DECONVOLVED, backpropagate, needs_rectifiers, ruled


@method(
    "deconvolution",
    not_applicable=needs_rectifiers,
    known_failures={
        "ground_truth": "it lets pass what the activations would stop: .06 to .14 in five models "
        "of shapes, where the image itself has .31 (vgg with .46 and vit with .36 pass)"
    },
    family="propagation",
    passes=(1, 1),
    reference="Zeiler and Fergus 2013",
)
def deconvolution(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The gradient, with relu(upstream) in place of every rectifying activation's derivative.

    Max pooling keeps its switches, and gates keep their derivative.
    """
    return backpropagate(ruled(model, DECONVOLVED), images, targets).sum(1)
