"""Fine-tuning that accustoms a model to deleted cells, as IDSDS needs, or pixels, as F-Fidelity."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR

from attrcheck.contracts import Dataset, Pixels, Tuning
from attrcheck.datasets import DatasetError
from attrcheck.datasets.pixels import normalised
from attrcheck.graph.preparing import prepare
from attrcheck.pace import Pace
from attrcheck.removal import Removal, removal
from attrcheck.store.seeds import derive
from attrcheck.tensors.cells import GridError, cell_masks
from attrcheck.training import WEIGHTS
from attrcheck.training.loop import accuracy, learn, shifted
from attrcheck.training.similarity import similarity
from attrcheck.training.weights import load_weights, read_about, save_weights

LOST = 0.5
"""The share of training images that lose a cell."""
COPIES = 4
"""How often each validation image loses a cell."""
MASKS = 256
"""Sets of random pixels that a model is accustomed to lose."""
WORST = 16
"""Sets of them of which the worst is found."""
COMPARED = 1000
"""Images at most that networks are compared on: they lie in memory."""


@dataclass(frozen=True)
class TuningRecipe:
    """How models are fine-tuned, all families alike.

    Rate, decay, momentum and batch are those published for CIFAR, the nearest to networks of this
    size, which need a fraction of the 30 epochs; the rate falls to a tenth every `step` epochs. All
    was chosen on validation images: there, a rate of 0.03 in batches of 32 left B-cos with 43% of
    the digits right, one of 0.001 in batches of 64 gained VGG nothing on shapes, and the second
    drop of the rate changed nothing.
    """

    epochs: int = 5
    step: int = 3
    batch: int = 128
    rate: float = 5e-3
    momentum: float = 0.9
    decay: float = 5e-4
    shift: int = 2
    held_out: float = 0.1


RECIPES = {
    # A small training split needs more epochs to make enough steps.
    "digits": TuningRecipe(epochs=12, step=6),
    # Half of the epochs that most models were trained for.
    "objects": TuningRecipe(epochs=2, step=1),
    # As published, by the paper and by its reproduction.
    "imagenet": TuningRecipe(epochs=30, step=10, batch=256, rate=1e-3, decay=1e-4, shift=0),
    "cifar100": TuningRecipe(epochs=30, step=15, shift=0),
}


def recipe_for(dataset: str) -> TuningRecipe:
    """How models are fine-tuned on a dataset, by its name."""
    return RECIPES.get(dataset, TuningRecipe())


@dataclass(frozen=True)
class Deletion:
    """Replaces cells of images; `keep` [cells, H, W] is False in the cell of that number.

    Where random pixels are lost in place of cells, each set of them counts as one. worst: of how
    many, from the first, the worst is found; None: of all.
    """

    keep: Tensor
    remove: Removal
    worst: int | None = None

    @classmethod
    def of(cls, data: Dataset, tuning: Tuning, device: torch.device) -> Deletion:
        """Of the images of a dataset, in grid x grid equal cells, row by row, or at random."""
        if tuning.share:
            sets = _sets(tuning.share, data.images[:1]).to(device)
            return cls(~sets, removal.get(tuning.removal), WORST)
        if tuning.grid < 2:
            raise DatasetError(f"dataset {data.name!r}: a grid needs more than one cell")
        try:
            cells = cell_masks(tuning.grid, data.images[:1]).to(device)
        except GridError as error:
            raise DatasetError(f"dataset {data.name!r}: {error}") from error
        return cls(~cells, removal.get(tuning.removal))

    def __call__(self, images: Tensor, cells: Tensor, seeds: Sequence[int]) -> Tensor:
        """Each image without its cell."""
        return self.remove(images, self.keep[cells], seeds=seeds)

    def at_random(self, images: Tensor) -> Tensor:
        """Each image, with probability 1/2, without one cell, all cells being equally likely."""
        lost = (torch.rand(len(images)) < LOST).nonzero()[:, 0]
        images = images.clone()
        if len(lost):
            images[lost] = self.uniformly(images[lost])
        return images

    def uniformly(self, images: Tensor) -> Tensor:
        """Each image without one cell, all cells being equally likely."""
        cells = torch.randint(len(self.keep), (len(images),))
        return self(images, cells, torch.randint(2**62, (len(images),)).tolist())


def _sets(share: float, images: Tensor) -> Tensor:
    """Sets of random pixels, each of its own share of the image up to this one: [sets, H, W]."""
    generator = torch.Generator().manual_seed(0)
    height, width = images.shape[2:]
    counts = (torch.rand(MASKS, 1, generator=generator) * int(share * height * width)).ceil()
    draws = torch.rand(MASKS, height * width, generator=generator)
    return (draws.argsort(1).argsort(1) < counts).view(-1, height, width)


def finetune(
    network: nn.Module,
    data: Dataset,
    tuning: Tuning,
    recipe: TuningRecipe | None = None,
    seed: int = 0,
    report: Callable[[str], None] = lambda text: None,
) -> tuple[nn.Module, dict[str, Any]]:
    """A copy of a network, fine-tuned and in eval mode, and facts about it that fit into JSON.

    The network comes as it was trained, not prepared: a folded batch norm could not learn. The
    epoch kept is the best on images held out of the training split; it is 0, nothing learnt, only
    if that beats all others. A model that was trained on the whole split knows those images, which
    favours early epochs. Accuracies and similarity are those on the evaluation images.
    The same seed and number of threads give the same weights on the same machine.
    """
    recipe = recipe or recipe_for(data.name)
    device = next((part.device for part in network.parameters()), torch.device("cpu"))
    delete = Deletion.of(data, tuning, device)
    images, labels = _training(data, device)
    before = copy.deepcopy(network).eval()
    after = copy.deepcopy(before).requires_grad_()
    with torch.random.fork_rng(devices=[]), torch.enable_grad():
        torch.manual_seed(seed)
        held_out, rest = split(len(images), recipe.held_out)
        validate = _validation(images[held_out], labels[held_out], delete)
        learnt = images[rest] if isinstance(images, Tensor) else images.part(rest)
        scores, epoch, best = [validate(after)], 0, before.state_dict()
        pace = Pace(recipe.epochs)
        for number in _epochs(after, learnt, labels[rest], delete, recipe):
            scores.append(validate(after))
            place = f"epoch {number} of {recipe.epochs}"
            report(f"{place}, validation {scores[-1]:.4f}, {pace.left(number)}")
            if scores[-1] == max(scores):
                epoch, best = number, copy.deepcopy(after.state_dict())
    after.load_state_dict(best)
    return after.eval(), {
        "grid": tuning.grid,
        "removal": tuning.removal,
        "share": tuning.share,
        "seed": seed,
        "epochs": recipe.epochs,
        "epoch": epoch,
        "recipe": asdict(recipe),
        "validation": {"images": len(held_out), "scores": [round(score, 6) for score in scores]},
        **compare(before, after, data, delete, seed),
    }


def compare(
    before: nn.Module, after: nn.Module, data: Dataset, delete: Deletion, seed: int = 0
) -> dict[str, Any]:
    """Two networks on the evaluation images: accuracy, accuracy without the worst cell, similarity.

    The worst cell is the one whose loss leaves the lowest accuracy over all images.
    """
    data = data.head(COMPARED)
    images = data.normalise(data.images[:].to(delete.keep.device))
    labels = data.labels.to(delete.keep.device)
    seeds = [derive(seed, data.name, image, "tuning") for image in data.ids]
    facts: dict[str, dict[str, float | None]] = {"accuracy": {}, "worst_cell": {}}
    for when, network in (("before", before), ("after", after)):
        facts["accuracy"][when] = accuracy(network, images, labels)
        facts["worst_cell"][when] = min(
            accuracy(network, delete(images, torch.full_like(labels, cell), seeds), labels)
            for cell in range(delete.worst or len(delete.keep))
        )
    prepared = [prepare(network, images[:2]) for network in (before, after)]
    facts["similarity"] = similarity(prepared[0], prepared[1], images, labels)
    return {
        what: {key: value if value is None else round(value, 6) for key, value in fact.items()}
        for what, fact in facts.items()
    }


def split(count: int, share: float) -> tuple[Tensor, Tensor]:
    """Indices of the images held out, at least one, and of the rest, drawn at random."""
    order = torch.randperm(count)
    size = min(max(1, round(count * share)), COMPARED)
    return order[:size], order[size:]


def _training(data: Dataset, device: torch.device) -> tuple[Tensor | Pixels, Tensor]:
    if data.training is None:
        raise DatasetError(
            f"dataset {data.name!r} has no training split, so its models cannot be fine-tuned; "
            "give it one, Dataset(training=...), or leave out what needs fine-tuned models"
        )
    images, labels = data.training()
    return normalised(data, images, device), labels.to(device)


def _validation(images: Tensor, labels: Tensor, delete: Deletion) -> Callable[[nn.Module], float]:
    """Scores networks by the mean of their accuracies on whole images and on ones with a loss."""
    lossy, again = delete.uniformly(images.repeat(COPIES, 1, 1, 1)), labels.repeat(COPIES)

    def score(network: nn.Module) -> float:
        return (accuracy(network, images, labels) + accuracy(network, lossy, again)) / 2

    return score


def _epochs(
    network: nn.Module,
    images: Tensor | Pixels,
    labels: Tensor,
    delete: Deletion,
    recipe: TuningRecipe,
) -> Iterator[int]:
    """Train a network in place, stopping after each epoch to yield its number."""
    count = len(images)
    steps = ceil(count / recipe.batch)
    optimiser = SGD(network.parameters(), recipe.rate, recipe.momentum, weight_decay=recipe.decay)
    schedule = StepLR(optimiser, recipe.step * steps, 0.1)
    # Equal parts: a batch norm cannot learn from a last batch of one.
    batches = (
        chosen for _ in range(recipe.epochs) for chosen in torch.randperm(count).tensor_split(steps)
    )

    def lossy(batch: Tensor) -> Tensor:
        return delete.at_random(shifted(batch, recipe.shift))

    for step in learn(network, images, labels, batches, optimiser, schedule, lossy):
        if step % steps == 0:
            yield step // steps


def finetune_embedded(
    data: Dataset,
    model: str,
    build: Callable[[Dataset], nn.Module],
    tuning: Tuning,
    recipe: TuningRecipe | None = None,
    folder: Path = WEIGHTS,
    seed: int = 0,
    report: Callable[[str], None] = print,
    progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Fine-tune a model from the weights that ship with the package, and save it with its facts."""
    network = build(data)
    load_weights(network, data.name, model)
    what = f"{data.name}-{model}"
    tuned, facts = finetune(
        network, data, tuning, recipe, seed, lambda text: progress(f"{what}: {text}")
    )
    base = read_about(data.name, model)["sha256"]
    save_weights(tuned, data.name, model, tuning.key, folder, base=base, **facts)
    report(f"{what}: {summary(facts)}")


def summary(facts: dict[str, Any]) -> str:
    """The facts about a fine-tuned model that matter most, in one line."""
    moved = facts["similarity"]
    maps = "none" if moved["gradcam"] is None else f"{moved['gradcam']:.4f}"
    return "; ".join(
        [
            "accuracy {before:.4f} -> {after:.4f}".format(**facts["accuracy"]),
            "worst cell {before:.4f} -> {after:.4f}".format(**facts["worst_cell"]),
            f"label probability moved by {moved['label_probability']:.4f}",
            f"total variation {moved['total_variation']:.4f}",
            f"Grad-CAM {maps}",
        ]
    )
