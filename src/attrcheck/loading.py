"""Load a dataset and a model for it: once per worker, checked, prepared, on the device."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from attrcheck.datasets import Dataset, DatasetError
from attrcheck.datasets import dataset as datasets
from attrcheck.errors import AttrcheckError
from attrcheck.fingerprint import digest, of_code
from attrcheck.memory import QUICK_ELEMENTS, quick_size
from attrcheck.models import ModelSpec
from attrcheck.models import model as models
from attrcheck.models._fast import Fast, fast
from attrcheck.models._prepare import prepare
from attrcheck.models._tuning import Tuning
from attrcheck.models._weights import load_weights
from attrcheck.protocols import Batch, Rows
from attrcheck.seeds import derive
from attrcheck.settings import Settings
from attrcheck.store import Store
from attrcheck.tuning import tuned


class ModelError(AttrcheckError):
    """A model that does not do what a classifier of its dataset does."""


@dataclass(frozen=True, eq=False)
class Setup:
    """A dataset x model, ready: normalised images and labels, and the network in two forms.

    network: prepared, for methods to take apart. judge: for protocols to look at images with,
    fast and out of the methods' reach. facts: about its fine-tuning, where it went through one.
    whole: all of the dataset, if it has more images than are looked at.
    """

    dataset: Dataset
    model: str
    network: nn.Module
    judge: Fast
    images: Tensor
    labels: Tensor
    fingerprint: str
    facts: dict[str, Any] = field(default_factory=dict)
    whole: Dataset | None = None

    @property
    def pair(self) -> str:
        """The name of the pair, as in the ids of its cases."""
        return f"{self.dataset.name}-{self.model}"

    @property
    def reference(self) -> Dataset:
        """What methods take backgrounds and statistics from, however many images are looked at."""
        return self.whole or self.dataset

    def slices(self, images: int | None = None) -> Iterator[slice]:
        """The batches that all images, or the first of them, are cut into, alike in every run."""
        size = quick_size(self.images)
        end = len(self.images) if images is None else min(images, len(self.images))
        return (slice(start, min(start + size, end)) for start in range(0, end, size))

    def batch(self, part: slice, seed: int, intact: Rows) -> Batch:
        """Some of the images, as a protocol sees them."""
        masks = self.dataset.masks
        return Batch(
            images=self.images[part],
            labels=self.labels[part],
            seeds=self.seeds(part, seed, "ties"),
            intact={name: row[part] for name, row in intact.items()},
            masks=None if masks is None else masks[part].to(self.images.device),
            chance=1 / self.dataset.classes,
        )

    def seeds(self, part: slice, seed: int, *purpose: str) -> tuple[int, ...]:
        """One seed an image, from the run's seed, the image's name and the purpose."""
        ids = self.dataset.ids[part]
        return tuple(derive(seed, self.dataset.name, image, *purpose) for image in ids)


@functools.lru_cache(maxsize=2)
def load(
    dataset: str,
    model: str,
    images: int | None,
    device: str,
    tuning: Tuning | None = None,
    settings: Settings | None = None,
) -> Setup:
    """The pair with its first `images` images; kept, since the next item likely needs it again.

    With `tuning` the model is fine-tuned first: from the weights that ship with the package, from
    the store of these settings, or here and now.
    """
    whole = _load_dataset(dataset)
    data = whole.head(images)
    spec = models.get(model)
    network = _build(spec, data, device)
    facts: dict[str, Any] = {}
    if tuning is not None:
        store = Store(settings.store, settings.run, settings.fresh) if settings else None
        network, facts = tuned(network, whole, spec, tuning, store)
    state = (part for item in network.state_dict().items() for part in item)
    return Setup(
        dataset=data,
        model=model,
        network=prepare(network),
        judge=fast(network),
        images=data.normalise(data.images.to(device)),
        labels=data.labels.to(device),
        fingerprint=digest(
            data.fingerprint,
            whole.fingerprint,
            of_code(spec.build),
            of_code(prepare),
            of_code(fast),
            torch.device(device).type,
            torch.__version__,
            QUICK_ELEMENTS,
            *state,
        ),
        facts=facts,
        whole=whole,
    )


def _build(spec: ModelSpec, data: Dataset, device: str) -> nn.Module:
    """The network with its weights, on the device; a copy, as a builder may keep its own."""
    network = copy.deepcopy(spec.build(data))
    if spec.embedded:
        load_weights(network, data.name, spec.name)
    return network.eval().to(device)


@functools.lru_cache(maxsize=2)
def _load_dataset(name: str) -> Dataset:
    """The whole dataset, which must have what it is registered to offer."""
    spec = datasets.get(name)
    data = spec.load()
    for offer in spec.offers:
        if getattr(data, offer, None) is None:
            raise DatasetError(f"dataset {name!r} offers {offer!r}, but Dataset.{offer} is None")
    return data


def check(setup: Setup) -> None:
    """Raise ModelError unless the network maps images to finite logits of the dataset's classes."""
    images, data = setup.images[:2], setup.dataset
    with torch.inference_mode():
        output = setup.judge(images)
    shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
    where = f"model {setup.model!r} on dataset {data.name!r}"
    if shape != [len(images), data.classes]:
        raise ModelError(
            f"{where}: the output must be logits [{len(images)}, {data.classes}], one row an "
            f"image, but is {shape}"
        )
    if not output.isfinite().all():
        raise ModelError(f"{where}: logits are not finite")
