"""Integrated gradients without their sign (Sundararajan et al. 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import STEPS
from attrcheck.methods.integrated_gradients import integrated_gradients


@method(
    "integrated_gradients_abs",
    absolute_of="integrated_gradients",
    default=True,
    family="gradient",
    passes=(STEPS, STEPS),
    reference="Sundararajan et al. 2017",
)
def integrated_gradients_abs(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """|map of integrated_gradients|: channels are summed before the sign is dropped."""
    return integrated_gradients(model, images, targets).abs()
