"""Grad-CAM (Selvaraju et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._cam import ALL_ZERO, grad_cam, needs_stage


@method(
    "gradcam",
    family="cam",
    passes=(1, 1),
    reference="Selvaraju et al. 2017",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def gradcam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum over k of A_k * mean of df/dA_k) at the last convolutional stage."""
    return grad_cam(model, images, targets, stage)
