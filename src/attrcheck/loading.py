"""Load a dataset and a model for it: once per worker, checked, prepared, on the device."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from attrcheck.datasets import Dataset
from attrcheck.datasets import dataset as datasets
from attrcheck.errors import AttrcheckError
from attrcheck.fingerprint import digest, of_code
from attrcheck.models import model as models
from attrcheck.models._prepare import prepare
from attrcheck.models._weights import load_weights
from attrcheck.protocols import Batch, Rows
from attrcheck.seeds import derive

BATCH_ELEMENTS = 64 * 3 * 32 * 32
"""Input elements a batch: fixed, because a float depends on the batch it was computed in."""


class ModelError(AttrcheckError):
    """A model that does not do what a classifier of its dataset does."""


@dataclass(frozen=True)
class Setup:
    """A dataset x model, ready: normalised images and labels, and the prepared network."""

    dataset: Dataset
    model: str
    network: nn.Module
    images: Tensor
    labels: Tensor
    fingerprint: str

    @property
    def pair(self) -> str:
        """The name of the pair, as in the ids of its cases."""
        return f"{self.dataset.name}-{self.model}"

    def slices(self) -> Iterator[slice]:
        """The batches that all images are cut into, the same in every run."""
        size = max(1, BATCH_ELEMENTS // self.images[0].numel())
        return (slice(start, start + size) for start in range(0, len(self.images), size))

    def batch(self, part: slice, seed: int, intact: Rows) -> Batch:
        """Some of the images, as a protocol sees them."""
        masks = self.dataset.masks
        return Batch(
            images=self.images[part],
            labels=self.labels[part],
            seeds=self.seeds(part, seed, "ties"),
            intact={name: row[part] for name, row in intact.items()},
            masks=None if masks is None else masks[part].to(self.images.device),
        )

    def seeds(self, part: slice, seed: int, *purpose: str) -> tuple[int, ...]:
        """One seed an image, from the run's seed, the image's name and the purpose."""
        ids = self.dataset.ids[part]
        return tuple(derive(seed, self.dataset.name, image, *purpose) for image in ids)


@functools.lru_cache(maxsize=2)
def load(dataset: str, model: str, images: int | None, device: str) -> Setup:
    """The pair with its first `images` images; kept, since the next item likely needs it again."""
    data = _load_dataset(dataset).head(images)
    spec = models.get(model)
    network = spec.build(data)
    if spec.embedded:
        load_weights(network, dataset, model)
    network = network.eval().to(device)
    inputs = data.normalise(data.images.to(device))
    state = (part for item in network.state_dict().items() for part in item)
    return Setup(
        dataset=data,
        model=model,
        network=prepare(network),
        images=inputs,
        labels=data.labels.to(device),
        fingerprint=digest(
            data.fingerprint,
            of_code(spec.build),
            of_code(prepare),
            torch.device(device).type,
            torch.__version__,
            BATCH_ELEMENTS,
            *state,
        ),
    )


@functools.lru_cache(maxsize=2)
def _load_dataset(name: str) -> Dataset:
    return datasets.get(name).load()


def check(setup: Setup) -> None:
    """Raise ModelError unless the network maps images to finite logits of the dataset's classes."""
    images, data = setup.images[:2], setup.dataset
    with torch.inference_mode():
        output = setup.network(images)
    shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
    where = f"model {setup.model!r} on dataset {data.name!r}"
    if shape != [len(images), data.classes]:
        raise ModelError(
            f"{where}: the output must be logits [{len(images)}, {data.classes}], one row an "
            f"image, but is {shape}"
        )
    if not output.isfinite().all():
        raise ModelError(f"{where}: logits are not finite")
