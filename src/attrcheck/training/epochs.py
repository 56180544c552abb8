"""Train a network on many pictures, by the recipe of the Meta-Rank paper; goes on after a kill."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.optim import Adam
from torch.optim.lr_scheduler import CosineAnnealingLR

from attrcheck.contracts import Dataset, Pixels, Preprocessing
from attrcheck.datasets import DatasetError
from attrcheck.datasets.pixels import normalised
from attrcheck.pace import Pace
from attrcheck.store.digests import digest
from attrcheck.store.files import whole
from attrcheck.store.seeds import derive
from attrcheck.training.loop import accuracy, learn, shifted
from attrcheck.training.weights import WeightsError, write_weights

BEGUN = ".training"
"""What is added to the name of the weights for what is kept of a training that is not finished."""
SHIFT = 28
"""Images are moved by up to this part of their side."""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class EpochRecipe:
    """Adam and cosine annealing as the Meta-Rank paper states them, for its 200 epochs.

    It does not state the size of a batch, nor how images are varied: here they are moved by a few
    pixels, and half of them are mirrored.
    """

    epochs: int = 200
    batch: int = 64
    rate: float = 1e-4
    decay: float = 5e-4


def train_by_epochs(
    network: nn.Module,
    data: Dataset,
    path: Path,
    recipe: EpochRecipe,
    seed: int = 0,
    progress: Progress = lambda text: None,
    preprocessing: Preprocessing | None = None,
    **facts: Any,
) -> float:
    """Train a network in place, write its weights with facts about them, and return its accuracy.

    After each epoch all that is needed to go on is written. Random numbers are seeded by epoch, so
    that the weights are the same whether or not the training was interrupted, on one machine.
    """
    if data.training is None:
        raise DatasetError(
            f"dataset {data.name!r} has no training split to learn from: put a folder `train` "
            "beside its pictures"
        )
    device = next(network.parameters()).device
    images, labels = data.training()
    images, labels = normalised(data, images, device), labels.to(device)
    steps = ceil(len(labels) / recipe.batch)
    optimiser = Adam(network.parameters(), lr=recipe.rate, weight_decay=recipe.decay)
    schedule = CosineAnnealingLR(optimiser, recipe.epochs * steps)
    parts = {"network": network, "optimiser": optimiser, "schedule": schedule}
    begun = path.with_name(path.stem + BEGUN)
    what = digest(asdict(recipe), seed, len(labels), data.class_names, asdict(data_frame(data)))
    start = _resume(begun, what, parts)
    pace = Pace(recipe.epochs * steps, start * steps)
    with torch.random.fork_rng(), torch.enable_grad():
        for epoch in range(start, recipe.epochs):
            torch.manual_seed(derive(seed, data.name, path.stem, "epoch", str(epoch)))
            batches = torch.randperm(len(labels)).tensor_split(steps)
            taken = (
                images if isinstance(images, Tensor) else cast("Pixels", _Ahead(images, batches))
            )
            for step in learn(network, taken, labels, batches, optimiser, schedule, varied):
                place = f"epoch {epoch + 1} of {recipe.epochs}, batch {step} of {steps}"
                progress(f"{place}, {pace.left(epoch * steps + step)}")
            _keep(begun, what, epoch + 1, parts)
    score = accuracy(network, normalised(data, data.images, device), data.labels.to(device))
    write_weights(
        network,
        path,
        {
            **facts,
            "dataset": data.name,
            "model": path.stem,
            "accuracy": round(score, 6),
            "classes": list(data.class_names),
            "preprocessing": asdict(preprocessing) if preprocessing else None,
            "recipe": asdict(recipe),
            "seed": seed,
        },
        {"class_names": json.dumps(data.class_names)},
    )
    begun.unlink(missing_ok=True)
    return score


def data_frame(data: Dataset) -> Preprocessing:
    """What is known of how a dataset is seen: its size, mean and std."""
    height, width = data.images.shape[2:]
    return Preprocessing((height, width), data.mean, data.std)


def varied(images: Tensor) -> Tensor:
    """Images moved by a few pixels, half of them mirrored."""
    mirrored = torch.rand(len(images)) < 0.5
    images = shifted(images, images.shape[-1] // SHIFT)
    return torch.where(mirrored.to(images.device)[:, None, None, None], images.flip(-1), images)


def _keep(path: Path, what: str, epoch: int, parts: dict[str, Any]) -> None:
    state = {name: part.state_dict() for name, part in parts.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as temporary:
        torch.save({"what": what, "epoch": epoch, **state}, temporary)


def _resume(path: Path, what: str, parts: dict[str, Any]) -> int:
    """Load what was kept, if anything was, and return how many epochs are done."""
    if not path.is_file():
        return 0
    try:
        kept = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise WeightsError(
            f"cannot go on from {path} ({error}); remove it to begin anew"
        ) from error
    if kept["what"] != what:
        raise WeightsError(
            f"{path} is of a training with other settings, images or classes; train with those "
            "again, or remove it to begin anew"
        )
    for name, part in parts.items():
        part.load_state_dict(kept[name])
    return int(kept["epoch"])


class _Ahead:
    """Batches of pictures in a known order, the next one decoded while one is learnt from."""

    def __init__(self, images: Pixels, batches: Sequence[Tensor]) -> None:
        self._images = images
        self._rest = iter(batches)
        self._thread = ThreadPoolExecutor(1, "attrcheck-train")
        self._coming = self._next()

    def __getitem__(self, chosen: Tensor) -> Tensor:
        batch = self._coming.result()
        self._coming = self._next()
        return batch

    def _next(self) -> Future[Tensor]:
        chosen = next(self._rest, None)
        if chosen is None:
            self._thread.shutdown(wait=False)
            return Future()
        return self._thread.submit(self._images.__getitem__, chosen)
