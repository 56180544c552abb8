"""Layer-CAM (Jiang et al. 2021)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._cam import ALL_ZERO, combine, needs_stage, stage_tensors


@method(
    "layercam",
    family="cam",
    passes=(1, 1),
    reference="Jiang et al. 2021",
    not_applicable=needs_stage,
    constant=ALL_ZERO,
)
def layercam(
    model: nn.Module, images: Tensor, targets: Tensor, *, stage: str | None = None
) -> Tensor:
    """relu(sum over k of A_k * relu(df/dA_k)): every cell has its own weight."""
    activations, gradients = stage_tensors(model, images, targets, stage)
    return combine(gradients.relu(), activations, images)
