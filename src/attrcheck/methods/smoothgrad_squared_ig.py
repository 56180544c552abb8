"""SmoothGrad-squared over integrated gradients (Hooker et al. 2019)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, STEPS, mean_square, noisy
from attrcheck.methods.integrated_gradients import integrated_gradients


@method(
    "smoothgrad_squared_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Hooker et al. 2019",
)
def smoothgrad_squared_ig(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The mean of squared maps of integrated_gradients over 16 noisy copies."""
    return noisy(integrated_gradients, model, images, targets, seeds, statistic=mean_square)
