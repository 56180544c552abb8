"""Deconvolution (Zeiler and Fergus 2013)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rules import DECONVOLVED, backpropagate, needs_rectifiers, ruled


@method(
    "deconvolution",
    not_applicable=needs_rectifiers,
    family="propagation",
    passes=(1, 1),
    reference="Zeiler and Fergus 2013",
)
def deconvolution(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The gradient, with relu(upstream) in place of every rectifying activation's derivative.

    Max pooling keeps its switches, and gates keep their derivative.
    """
    return backpropagate(ruled(model, DECONVOLVED), images, targets).sum(1)
