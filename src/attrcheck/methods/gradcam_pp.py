"""Grad-CAM++ (Chattopadhay et al. 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._cam import ALL_ZERO, combine, needs_stage, stage_tensors


@method(
    "gradcam_pp",
    family="cam",
    passes=(1, 1),
    reference="Chattopadhay et al. 2018",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def gradcam_pp(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum of w_k A_k), w_k = sum of g^2 / (2 g^2 + g^3 sum of A_k) * relu(g), g = df/dA_k.

    As published, the derivatives are those of exp(f): where f is piecewise linear in A the n-th is
    exp(f) g^n. exp(f) drops out of the ratio, and would scale the map as a whole. A sum of
    rectified A_k is never negative; one that is counts as zero, so that the ratio stays finite.
    """
    activations, g = stage_tensors(model, images, targets, stage)
    total = activations.sum((2, 3), keepdim=True)
    weights = (g.relu() / (2 + (g * total).relu())).sum((2, 3), keepdim=True)
    return combine(weights, activations, images)
