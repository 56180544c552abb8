"""DeepSHAP: DeepLIFT from several baselines (Lundberg and Lee 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from attrcheck.datasets import Dataset
from attrcheck.memory import in_batches
from attrcheck.methods import method
from attrcheck.methods._gradients import BACKGROUND, background
from attrcheck.methods.deeplift import applies, contributions


@method(
    "deepshap",
    applies=applies,
    family="gradient",
    passes=(BACKGROUND + 1, BACKGROUND + 1),
    reference="Lundberg and Lee 2017",
    constant="zero everywhere if the image itself is the only one of the dataset",
)
def deepshap(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """The mean of DeepLIFT's maps from each of the first 10 images of the dataset.

    The map sums to f(x) - mean of f(b). The baselines form the batch, and the image is what they
    share: the same but for the sign, and it runs once instead of ten times.
    """
    references = background(dataset, images)

    def one(image: Tensor, target: Tensor) -> Tensor:
        def work(part: slice) -> Tensor:
            rows = references[part]
            return -contributions(model, rows, target.expand(len(rows)), image[None])

        return torch.cat(list(in_batches(work, len(references), model, images))).mean(0)

    return torch.stack([one(*pair) for pair in zip(images, targets, strict=True)])
