"""The training loop, and the training of embedded models with checkpoints along the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from math import ceil
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR

from attrcheck.contracts import Dataset, Pixels
from attrcheck.datasets import DatasetError
from attrcheck.datasets.pixels import normalised
from attrcheck.pace import Pace
from attrcheck.training import WEIGHTS
from attrcheck.training.weights import CHECKPOINTS, save_weights

Augment = Callable[[Tensor], Tensor]
"""Images [N, C, H, W] in, the images to learn from in their place out."""


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


RECIPES = {
    # A small training split needs more epochs of smaller batches to make enough steps.
    "digits": Recipe(epochs=24, batch=32),
    # Few epochs leave models between 86% and 95%; in batches of 64 B-cos got 52% half way.
    "objects": Recipe(epochs=4, batch=32),
    # After four epochs they got more than 95%.
    "objects-efficientnet": Recipe(epochs=2, batch=32),
    "objects-inception": Recipe(epochs=2, batch=32),
    "objects-vit": Recipe(epochs=2, batch=32),
    # Without batch norm it wants a lower rate.
    "objects-vgg": Recipe(epochs=2, batch=32, rate=2e-3),
}
# Attention wants a lower rate: with two convolutions before it, 400 steps on shapes led to 32%
# of the batches right rather than to 24%.
RATES = {"vit": 1.5e-3}


def recipe_for(dataset: str, model: str) -> Recipe:
    """How a family is trained on a dataset, by their names."""
    recipe = RECIPES.get(f"{dataset}-{model}") or RECIPES.get(dataset, Recipe())
    return replace(recipe, rate=RATES.get(model, recipe.rate))


def train(
    data: Dataset,
    model: str,
    build: Callable[[Dataset], nn.Module],
    recipe: Recipe | None = None,
    folder: Path = WEIGHTS,
    seed: int = 0,
    report: Callable[[str], None] = print,
    progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Build the model of this name, train it on the training split and save its checkpoints.

    The same seed and number of threads give the same weights on the same machine.
    """
    recipe = recipe or recipe_for(data.name, model)
    if data.training is None:
        raise DatasetError(f"dataset {data.name!r} has no training split to learn from")
    images, labels = data.training()
    device = torch.device("cpu")
    images = normalised(data, images, device)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build(data)
        steps = recipe.epochs * ceil(len(images) / recipe.batch)
        marks = {percent: ceil(steps * percent / 100) for percent in CHECKPOINTS}
        pace = Pace(steps)
        for step in follow(recipe, network, images, labels):
            progress(f"{data.name}-{model}: step {step} of {steps}, {pace.left(step)}")
            for percent in (percent for percent, mark in marks.items() if mark == step):
                score = accuracy(network, normalised(data, data.images, device), data.labels)
                save_weights(
                    network,
                    data.name,
                    model,
                    percent,
                    folder,
                    accuracy=round(score, 6),
                    epoch=recipe.epochs * percent / 100,
                    seed=seed,
                    recipe=asdict(recipe),
                )
                report(f"{data.name}-{model} at {percent}%: accuracy {score:.4f}")


def trained(
    build: Callable[[], nn.Module],
    images: Tensor,
    labels: Tensor,
    recipe: Recipe,
    seed: int,
    augment: Augment = lambda images: images,
) -> nn.Module:
    """A network, built and trained on normalised images, in eval mode; the seed decides all."""
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        network = build()
        for _ in follow(recipe, network, images, labels, augment):
            pass
    return network.eval().requires_grad_(False)


def follow(
    recipe: Recipe,
    network: nn.Module,
    images: Tensor | Pixels,
    labels: Tensor,
    augment: Augment = lambda images: images,
) -> Iterator[int]:
    """Train a network in place by a recipe, stopping after each step to yield its number.

    Images are shifted first, then augmented.
    """
    steps = recipe.epochs * ceil(len(images) / recipe.batch)
    optimiser = AdamW(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    schedule = OneCycleLR(optimiser, recipe.rate, total_steps=steps, pct_start=recipe.warmup)
    batches = (
        chosen
        for _ in range(recipe.epochs)
        for chosen in torch.split(torch.randperm(len(images)), recipe.batch)
    )

    def changed(batch: Tensor) -> Tensor:
        return augment(shifted(batch, recipe.shift))

    return learn(network, images, labels, batches, optimiser, schedule, changed)


def learn(
    network: nn.Module,
    images: Tensor | Pixels,
    labels: Tensor,
    batches: Iterable[Tensor],
    optimiser: Optimizer,
    schedule: LRScheduler,
    augment: Augment,
) -> Iterator[int]:
    """The loop: one step for each batch of indices, stopping after each to yield its number.

    Whoever asks for steps may look at the network in eval mode in between. Batches are drawn when
    they are needed, from the same generator as augmentations.
    """
    for step, chosen in enumerate(batches, 1):
        network.train()
        loss = F.cross_entropy(network(augment(images[chosen])), labels[chosen])
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        schedule.step()
        yield step


def accuracy(network: nn.Module, images: Tensor | Pixels, labels: Tensor) -> float:
    """The share of normalised images that a network gets right, in eval mode."""
    network.eval()
    with torch.no_grad():
        batches = (images[start : start + 250] for start in range(0, len(images), 250))
        right = torch.cat([network(batch).argmax(1) for batch in batches]) == labels
    return right.sum().item() / len(right)


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
