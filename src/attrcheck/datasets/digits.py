"""Handwritten digits: the 1797 real 8x8 scans known from scikit-learn, enlarged to 32x32.

The scans (Alpaydin and Kaynak, UCI Machine Learning Repository, CC BY 4.0) lie beside this file:
importing scikit-learn for them would cost each worker two seconds.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from attrcheck.contracts import Dataset
from attrcheck.datasets import dataset
from attrcheck.datasets.order import places
from attrcheck.datasets.shipped import arrays

SCANS = Path(__file__).with_suffix(".npz")
SHA256 = "b2dab7b501728c22e9119ad76740b2e17c77a231e42d1e592380d90886f1a05e"
SEED = 0
HELD_OUT = 0.2

# Mean and standard deviation of the training split.
MEAN = (0.3053,)
STD = (0.3235,)


@dataset("digits", offers=("training",))
def digits() -> Dataset:
    """A fifth of the scans, held out; the rest are what models learn from."""
    images, labels = _scans()
    held_out, _ = split(labels.numpy())
    return Dataset(
        name="digits",
        images=images[held_out],
        labels=labels[held_out],
        classes=10,
        mean=MEAN,
        std=STD,
        ids=tuple(f"digits/{index}" for index in held_out),
        training=training,
    )


def training() -> tuple[Tensor, Tensor]:
    """Images in [0, 1] and labels of the training split."""
    images, labels = _scans()
    _, rest = split(labels.numpy())
    return images[rest], labels[rest]


def split(labels: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of the held-out and of the training images, the same fifth of every class.

    Classes are dealt out evenly, so that every prefix of either part is a fair sample. Only plain
    uniform draws are used: NumPy does not promise that its shuffles stay the same.
    """
    rng = np.random.default_rng(SEED)
    place = places(labels, lambda members, purpose: rng.random(len(members)))
    order = np.argsort(place, kind="stable")
    return order[place[order] < HELD_OUT], order[place[order] >= HELD_OUT]


def _scans() -> tuple[Tensor, Tensor]:
    """All scans in scikit-learn's order."""
    stored = arrays(SCANS, SHA256)
    pixels, labels = stored["images"], stored["labels"]
    small = torch.from_numpy(pixels[:, None] / 16).float()
    # Sixteenths times eighths: float32 holds every step exactly, so all machines agree.
    images = F.interpolate(small, scale_factor=4, mode="bilinear", align_corners=False)
    return images, torch.from_numpy(labels.astype(np.int64))
