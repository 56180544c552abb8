"""Guided Grad-CAM (Selvaraju et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._cam import ALL_ZERO, grad_cam, needs_stage
from attrcheck.methods._rules import needs_rectifiers
from attrcheck.methods.guided_backprop import guided_backprop


def applies(model: nn.Module) -> str | None:
    """Both of its factors must apply."""
    return needs_rectifiers(model) or needs_stage(model)


@method(
    "guided_gradcam",
    family="propagation",
    passes=(2, 2),
    reference="Selvaraju et al. 2017",
    not_applicable=applies,
    constant=ALL_ZERO,
)
def guided_gradcam(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Guided backpropagation times Grad-CAM at the last convolutional stage."""
    return guided_backprop(model, images, targets) * grad_cam(model, images, targets)
