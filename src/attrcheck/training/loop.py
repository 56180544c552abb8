"""Training of the embedded models, with checkpoints along the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from math import ceil
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attrcheck.datasets import DatasetError, dataset
from attrcheck.models import model
from attrcheck.training import WEIGHTS
from attrcheck.training.weights import CHECKPOINTS, save_weights


@dataclass(frozen=True)
class Recipe:
    """How models are trained; all families of a dataset share one recipe, but for RATES.

    The Meta-Rank paper used Adam with a learning rate of 1e-4, a weight decay of 5e-4 and cosine
    annealing. Networks of this size reach the same point in a fraction of the epochs at forty
    times that rate, which needs a short warm-up and AdamW's decoupled decay. Random shifts by a
    few pixels make up for the small training splits.
    """

    epochs: int = 16
    batch: int = 64
    rate: float = 4e-3
    decay: float = 0.05
    warmup: float = 0.05
    shift: int = 2


# A small training split needs more epochs of smaller batches to make enough steps.
RECIPES = {"digits": Recipe(epochs=24, batch=32)}
# Attention wants a lower rate: with two convolutions before it, 400 steps on shapes led to 32%
# of the batches right rather than to 24%.
RATES = {"vit": 1.5e-3}


def recipe_for(dataset_name: str, model_name: str) -> Recipe:
    """How a family is trained on a dataset."""
    recipe = RECIPES.get(dataset_name, Recipe())
    return replace(recipe, rate=RATES.get(model_name, recipe.rate))


def train(
    dataset_name: str,
    model_name: str,
    recipe: Recipe | None = None,
    folder: Path = WEIGHTS,
    seed: int = 0,
    report: Callable[[str], None] = print,
) -> None:
    """Train a model on a dataset's training split and save its four checkpoints.

    The same seed and number of threads give the same weights on the same machine.
    """
    recipe = recipe or recipe_for(dataset_name, model_name)
    data = dataset.get(dataset_name).load()
    if data.training is None:
        raise DatasetError(f"dataset {dataset_name!r} has no training split to learn from")
    images, labels = data.training()
    images = data.normalise(images)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = model.get(model_name).build(data)
        for percent in _learn(network, images, labels, recipe):
            score = accuracy(network, data.normalise(data.images), data.labels)
            save_weights(
                network,
                dataset_name,
                model_name,
                percent,
                folder,
                accuracy=round(score, 6),
                epoch=recipe.epochs * percent / 100,
                seed=seed,
                recipe=asdict(recipe),
            )
            report(f"{dataset_name}-{model_name} at {percent}%: accuracy {score:.4f}")


def trained(
    build: Callable[[], nn.Module], images: Tensor, labels: Tensor, recipe: Recipe, seed: int
) -> nn.Module:
    """A network, built and trained on normalised images, in eval mode; the seed decides all."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        network = build()
        for _ in _learn(network, images, labels, recipe):
            pass
    return network.eval().requires_grad_(False)


def accuracy(network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The share of normalised images that a network gets right, in eval mode."""
    network.eval()
    with torch.no_grad():
        batches = torch.split(images, 250)
        right = torch.cat([network(batch).argmax(1) for batch in batches]) == labels
    return right.sum().item() / len(right)


def _learn(network: nn.Module, images: Tensor, labels: Tensor, recipe: Recipe) -> Iterator[int]:
    """Train a network in place, stopping at each checkpoint to yield its percentage."""
    steps = recipe.epochs * ceil(len(images) / recipe.batch)
    marks = {percent: ceil(steps * percent / 100) for percent in CHECKPOINTS}
    optimiser = torch.optim.AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, recipe.rate, total_steps=steps, pct_start=recipe.warmup
    )
    batches = _batches(len(images), recipe.batch)
    done = 0
    for percent, mark in marks.items():
        network.train()
        for chosen in islice(batches, mark - done):
            batch = shifted(images[chosen], recipe.shift)
            loss = F.cross_entropy(network(batch), labels[chosen])
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            schedule.step()
        done = mark
        yield percent


def _batches(count: int, size: int) -> Iterator[Tensor]:
    """Indices of one batch after another, epoch after epoch, each in a new order."""
    while True:
        yield from torch.split(torch.randperm(count), size)


def shifted(images: Tensor, most: int) -> Tensor:
    """Each image moved by up to `most` pixels either way, its border repeated."""
    n, channels, height, width = images.shape
    padded = F.pad(images, (most, most, most, most), mode="replicate")
    offsets = torch.randint(0, 2 * most + 1, (2, n, 1, 1, 1))
    return padded[
        torch.arange(n).view(-1, 1, 1, 1),
        torch.arange(channels).view(-1, 1, 1),
        offsets[0] + torch.arange(height).view(-1, 1),
        offsets[1] + torch.arange(width),
    ]
