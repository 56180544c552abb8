"""Local entropy: how many different grey values there are around a pixel."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import BLANK, brightness, local_mean, window

WINDOW = 9
BINS = 16


@method("local_entropy", family="dummy", passes=(0, 0), dummy=True, default=False, constant=BLANK)
def local_entropy(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """-sum of p log2 p over a histogram of 16 equal bins in [0, 1], in a window of 9x9."""
    grey = brightness(images, dataset)
    bins = (grey * BINS).long().clamp(0, BINS - 1)
    shares = local_mean(F.one_hot(bins, BINS).movedim(3, 1).to(grey), window(WINDOW, grey))
    entropy: Tensor = -torch.special.xlogy(shares, shares).sum(1) / math.log(2)
    return entropy.to(images)
