"""RISE with 200 masks: a fifth of the published cost (Petsiuk et al. 2018)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.methods import method
from attrcheck.methods._rise import rise_maps

FEW = 200


@method(
    "rise_200",
    family="perturbation",
    passes=(FEW, 0),
    reference="Petsiuk et al. 2018",
)
def rise_200(
    model: nn.Module, images: Tensor, targets: Tensor, *, seeds: tuple[int, ...]
) -> Tensor:
    """E[p(target | x m) m] / E[m] over 200 random masks m; what they remove becomes zero."""
    return rise_maps(model, images, targets, seeds, FEW)
