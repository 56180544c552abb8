"""Models that know labels by heart which say nothing of the images (Adebayo et al. 2018)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.datasets import DatasetError
from attrcheck.datasets.pixels import normalised
from attrcheck.training import WEIGHTS
from attrcheck.training.loop import Recipe, accuracy, recipe_for, trained
from attrcheck.training.weights import SHUFFLED, save_weights

IMAGES = 512
"""Of the training split: as many as a small network can learn by heart in a few minutes."""
RECIPE = Recipe(epochs=60, batch=32, decay=0.0, shift=0)
"""No decay and no shifts: nothing is to be generalised."""


def shuffled(labels: Tensor, seed: int = 0) -> Tensor:
    """The same labels in another order, which the seed decides."""
    return labels[torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))]


def train_shuffled(
    data: Dataset,
    model: str,
    build: Callable[[Dataset], nn.Module],
    recipe: Recipe | None = None,
    folder: Path = WEIGHTS,
    seed: int = 0,
    report: Callable[[str], None] = print,
) -> None:
    """Train the model of this name on the first training images with shuffled labels; save it.

    What is on record as its accuracy is that on these images and labels.
    """
    recipe = recipe or replace(RECIPE, rate=recipe_for(data.name, model).rate)
    if data.training is None:
        raise DatasetError(f"dataset {data.name!r} has no training split to learn from")
    images, labels = data.training()
    images = normalised(data, images[:IMAGES], torch.device("cpu"))[:]
    labels = shuffled(labels[:IMAGES], seed)
    network = trained(lambda: build(data), images, labels, recipe, seed)
    score = accuracy(network, images, labels)
    save_weights(
        network,
        data.name,
        model,
        SHUFFLED,
        folder,
        accuracy=round(score, 6),
        images=len(images),
        seed=seed,
        recipe=asdict(recipe),
    )
    report(f"{data.name}-{model} on shuffled labels: {score:.4f} of them known by heart")
