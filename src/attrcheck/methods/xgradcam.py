"""XGrad-CAM (Fu et al. 2020)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._cam import ALL_ZERO, combine, needs_stage, stage_tensors


@method(
    "xgradcam",
    default=False,
    family="cam",
    passes=(1, 1),
    reference="Fu et al. 2020",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def xgradcam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum of w_k A_k), w_k = the mean of df/dA_k weighted by A_k; nothing for a dead map."""
    activations, gradients = stage_tensors(model, images, targets, stage)
    total = activations.sum((2, 3), keepdim=True)
    weighted = (activations * gradients).sum((2, 3), keepdim=True)
    return combine(torch.where(total == 0, 0, weighted / total), activations, images)
