"""Pairs: a dataset x model, loaded once per process, checked, prepared, on the device."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Dataset, Method, Remote, Rows, Tuning
from attrcheck.datasets import DatasetError, checked
from attrcheck.datasets import dataset as datasets
from attrcheck.engine import keys
from attrcheck.engine.attribution import attribute_batch
from attrcheck.engine.tuned import tuned
from attrcheck.errors import AttrcheckError
from attrcheck.graph.predictor import Predictor, predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.models import ModelSpec
from attrcheck.models import model as models
from attrcheck.store.digests import digest
from attrcheck.store.entries import Key, Store
from attrcheck.store.seeds import derive
from attrcheck.tensors.batching import quick_size
from attrcheck.training.weights import load_weights

KEPT = 2
"""Pairs, and datasets, that stay loaded: the next item likely needs one of them again."""

T = TypeVar("T")


class ModelError(AttrcheckError):
    """A model that does not do what a classifier of its dataset does."""


class Source(NamedTuple):
    """What a pair is loaded by."""

    dataset: str
    model: str
    images: int | None
    tuning: Tuning | None


@dataclass(frozen=True, eq=False)
class Pair:
    """A dataset x model, ready; see `contracts.Pair`.

    whole: all of the dataset, if it has more images than are used. loader: where it came from.
    source: what that was asked for. changes: what was put in place of its parts since.
    """

    dataset: Dataset
    model: str
    network: nn.Module
    original: nn.Module
    predictor: Predictor
    images: Tensor
    labels: Tensor
    key: Key
    tuned: Mapping[str, Any] = field(default_factory=dict)
    whole: Dataset | None = None
    loader: Loader | None = None
    source: Source | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """As in the ids of its cases: dataset-model."""
        return f"{self.dataset.name}-{self.model}"

    @property
    def reference(self) -> Dataset:
        """What methods take backgrounds and statistics from, however few images are used."""
        return self.whole or self.dataset

    def given(self, method: Method) -> nn.Module:
        """The network that a method gets: prepared if it asks for that, else as it was built."""
        return self.network if method.prepared else self.original

    def slices(self, images: int | None = None) -> Iterator[slice]:
        """The batches that all images, or the first of them, are cut into, alike in every run."""
        size = quick_size(self.images)
        end = len(self.images) if images is None else min(images, len(self.images))
        return (slice(start, min(start + size, end)) for start in range(0, end, size))

    def batch(self, part: slice, seed: int, intact: Rows) -> Batch:
        """Some of the images, as a protocol gets them."""
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
        """One seed per image, from the run's seed, the image's name and the purpose."""
        ids = self.dataset.ids[part]
        return tuple(derive(seed, self.dataset.name, image, *purpose) for image in ids)

    def attribute(
        self, method: Method, part: slice, seed: int = 0, images: Tensor | None = None
    ) -> NDArray[np.float32]:
        """The method's checked maps of some of the images, or of others in their place."""
        return attribute_batch(method, self, part, seed, images)

    @property
    def remote(self) -> Remote | None:
        """What runs methods in processes of their own, as its loader says."""
        return self.loader.remote if self.loader else None

    def spoilt(self) -> None:
        """Load the dataset and its models anew when they are next asked for."""
        if self.loader:
            self.loader.forget(self)

    def altered(self, how: str, **changes: Any) -> Pair:
        """The pair with other networks, images or labels; `how` tells its records."""
        before = self.key.get("altered", "")
        key = {**self.key, "altered": f"{before}{how};"}
        return replace(self, key=key, changes={**self.changes, **changes}, **changes)

    def elsewhere(self, dataset: str, images: int) -> Pair:
        """The same model on the first images of another dataset."""
        if self.loader is None:
            raise ModelError(f"model {self.model!r} is not registered, so it has one dataset only")
        return self.loader.pair(dataset, self.model, images)


@dataclass
class Loader:
    """Loads pairs for one device, and keeps the last few; fine-tuned weights go to the store."""

    device: str
    store: Store | None = None
    remote: Remote | None = None
    _pairs: OrderedDict[Any, Pair] = field(default_factory=OrderedDict, repr=False)
    _datasets: OrderedDict[Any, Dataset] = field(default_factory=OrderedDict, repr=False)

    def pair(
        self, dataset: str, model: str, images: int | None = None, tuning: Tuning | None = None
    ) -> Pair:
        """The pair with its first `images` images, or all.

        With `tuning` the model is fine-tuned first: from the weights that ship with the package,
        from the store, or here and now.
        """

        def load() -> Pair:
            return self._load(dataset, model, images, tuning)

        return _kept(self._pairs, (dataset, model, images, tuning), load)

    def forget(self, pair: Pair) -> None:
        """Load a dataset and its models anew when next asked for: a method may have spoilt them."""
        name = pair.dataset.name
        for key in [key for key, known in self._pairs.items() if known.dataset.name == name]:
            del self._pairs[key]
        self._datasets.pop(name, None)

    def dataset(self, name: str) -> Dataset:
        """The whole dataset, which must have what it is registered to offer."""
        return _kept(self._datasets, name, lambda: _load_dataset(name))

    def _load(self, dataset: str, model: str, images: int | None, tuning: Tuning | None) -> Pair:
        whole = self.dataset(dataset)
        spec = models.get(model)
        network = _build(spec, whole.head(images), self.device)
        facts: Mapping[str, Any] = {}
        if tuning is not None:
            network, facts = tuned(network, whole, spec, tuning, self.store)
        data = whole.head(images)
        origin = datasets.get(dataset)
        declared = [
            *keys.of_depends(origin.depends, origin.load),
            *keys.of_depends(spec.depends, spec.build),
        ]
        key = {
            **keys.of_pair(data, whole, spec.build, network, self.device),
            **({"declared": digest(*declared)} if declared else {}),
            **({"traced": keys.of_tracing(spec.leaf, spec.concrete_args)} if spec.helped else {}),
        }
        pair = pair_of(network, data, model, self.device, spec)
        source = Source(dataset, model, images, tuning)
        return replace(pair, key=key, tuned=facts, whole=whole, loader=self, source=source)


def pair_of(
    network: nn.Module, data: Dataset, model: str, device: str, spec: ModelSpec | None = None
) -> Pair:
    """A network in its three forms and the images as it wants them; nothing is put on record."""
    images = data.normalise(data.images.to(device))
    tracing: dict[str, Any] = {"images": images[:2]}
    if spec:
        tracing |= {"leaf": spec.leaf, "concrete_args": spec.concrete_args}
    return Pair(
        dataset=data,
        model=model,
        network=prepare(network, **tracing),
        original=copy.deepcopy(network).eval(),
        predictor=predictor_of(network, **tracing),
        images=images,
        labels=data.labels.to(device),
        key={},
    )


def check(pair: Pair) -> None:
    """Raise ModelError unless the network maps images to finite logits of the dataset's classes."""
    images, data = pair.images[:2], pair.dataset
    with torch.inference_mode():
        output = pair.predictor(images)
    shape = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
    where = f"model {pair.model!r} on dataset {data.name!r}"
    if shape != [len(images), data.classes]:
        raise ModelError(
            f"{where}: the output must be logits [{len(images)}, {data.classes}], one row per "
            f"image, but is {shape}"
        )
    if not output.isfinite().all():
        raise ModelError(f"{where}: logits are not finite")


def _kept(memory: OrderedDict[Any, T], key: Any, load: Callable[[], T]) -> T:
    """What is remembered under a key, else loaded; the oldest is forgotten."""
    if key not in memory:
        memory[key] = load()
        while len(memory) > KEPT:
            memory.popitem(last=False)
    memory.move_to_end(key)
    return memory[key]


def _load_dataset(name: str) -> Dataset:
    spec = datasets.get(name)
    data = _copied(checked(spec.load()))
    for offer in spec.offers:
        if getattr(data, offer, None) is None:
            raise DatasetError(f"dataset {name!r} offers {offer!r}, but Dataset.{offer} is None")
    return data


def _copied(data: Dataset) -> Dataset:
    """The dataset with tensors of its own: whoever made it may hand out the same ones again."""

    def training() -> tuple[Tensor, Tensor]:
        images, labels = data.training()  # type: ignore[misc]
        return images.clone(), labels.clone()

    return replace(
        data,
        images=data.images.clone(),
        labels=data.labels.clone(),
        masks=None if data.masks is None else data.masks.clone(),
        training=training if data.training else None,
    )


def _build(spec: ModelSpec, data: Dataset, device: str) -> nn.Module:
    """The network with its weights, on the device; a copy, as a builder may keep its own."""
    network = copy.deepcopy(spec.build(data))
    if spec.embedded:
        load_weights(network, data.name, spec.name)
    return network.eval().to(device)
