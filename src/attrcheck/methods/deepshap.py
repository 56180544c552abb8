"""DeepSHAP: DeepLIFT from several baselines (Lundberg and Lee 2017)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._gradients import BACKGROUND, background
from attrcheck.methods.deeplift import applies, contributions


@method(
    "deepshap",
    not_applicable=applies,
    axioms={"completeness_in_mean": 1e-3},
    family="gradient",
    passes=(BACKGROUND + 1, BACKGROUND),  # a batch shares the baselines' forward passes
    reference="Lundberg and Lee 2017",
    constant="zero everywhere if the image itself is the only one of the dataset",
)
def deepshap(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """The mean of DeepLIFT's maps from each of the first 10 images of the dataset.

    The map sums to f(x) - mean of f(b).
    """
    return contributions(model, images, targets, background(dataset, images)).mean(1)
