"""VarGrad over integrated gradients (Adebayo et al. 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._gradients import OURS, STEPS, noisy, variance
from attrcheck.methods.integrated_gradients import integrated_gradients


@method(
    "vargrad_ig",
    family="gradient",
    passes=(OURS.samples * STEPS, OURS.samples * STEPS),
    reference="Adebayo et al. 2018",
    constant="zero everywhere if the image is of one value, which gets no noise",
)
def vargrad_ig(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """The variance of maps of integrated_gradients over 16 noisy copies."""
    return noisy(integrated_gradients, model, images, targets, seeds, statistic=variance)
