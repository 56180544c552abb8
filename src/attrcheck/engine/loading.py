"""Load pairs: datasets and networks by name, a shard at a time, each once per process."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

from torch import Tensor, nn

from attrcheck.contracts import Dataset, Model, Pictures, Precision, Remote, Tuning
from attrcheck.datasets import DatasetError
from attrcheck.datasets import dataset as datasets
from attrcheck.datasets.pixels import in_memory, pictures_of, view
from attrcheck.datasets.receiving import received
from attrcheck.engine import keys
from attrcheck.engine.attribution import own_line
from attrcheck.engine.fitting import fitted
from attrcheck.engine.pairs import NETWORKS, Forms, Pair, Source, forms_of
from attrcheck.engine.settings import BLOCK
from attrcheck.engine.tuned import ships, tuned
from attrcheck.errors import AttrcheckError, ModelError, text_of
from attrcheck.models import ModelSpec
from attrcheck.models import model as models
from attrcheck.store.digests import digest
from attrcheck.store.encoding import Entry, Key
from attrcheck.store.entries import Store
from attrcheck.tensors.batching import exhausted
from attrcheck.training.weights import load_weights

KEPT = 2
"""Pairs, networks and datasets that stay loaded: the next item likely needs one of them again."""
LIGHT = 2**28
"""Bytes of networks, and of the datasets that they see, that stay loaded beyond that."""

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Trained:
    """A model on a dataset: its network in its forms, and all of the dataset as it sees it.

    facts: what is known of its fine-tuning, if it had any.
    """

    data: Dataset
    forms: Forms
    key: Key
    facts: Mapping[str, Any] = field(default_factory=dict)

    def size(self) -> int:
        """Bytes of its weights, in all forms, and of the images if these are in memory."""
        images, built = self.data.images, self.forms.built
        weights: int = sum(value.nbytes for value in [*built.parameters(), *built.buffers()])
        seen = images.nbytes if isinstance(images, Tensor) else 0
        return len(NETWORKS) * weights + seen


@dataclass
class Loader:
    """Loads pairs for one device, and keeps the last few; fine-tuned weights go to the store.

    shard: images that are in memory at once, a multiple of BLOCK. precision: of predictors.
    progress: is told of fine-tuning. spoilt: the datasets on which a method has failed.
    """

    device: str
    store: Store | None = None
    remote: Remote | None = None
    shard: int = BLOCK
    precision: Precision = "float32"
    progress: Callable[[str], None] = lambda text: None
    spoilt: set[str] = field(default_factory=set)
    _datasets: OrderedDict[Any, Dataset | Pictures] = field(default_factory=OrderedDict, repr=False)
    _trained: OrderedDict[Any, Trained] = field(default_factory=OrderedDict, repr=False)
    _pairs: OrderedDict[Source, Pair] = field(default_factory=OrderedDict, repr=False)
    _keys: OrderedDict[Source, Key] = field(default_factory=OrderedDict, repr=False)
    _coming: dict[Source, Future[Dataset]] = field(default_factory=dict, repr=False)

    def pair(
        self,
        dataset: str,
        model: str,
        images: int | None = None,
        tuning: Tuning | None = None,
        shard: int | None = None,
    ) -> Pair:
        """The pair with its first `images` images, or all, or with one shard of them.

        With `tuning` the model is fine-tuned first: from the weights that ship with the package,
        from the store, or here and now. Of pictures, only shards fit into memory: without a number,
        the first block of them is meant.
        """
        source = Source(dataset, model, images, tuning, shard)
        return _kept(self._pairs, source, lambda: self._load(source))

    def count(self, dataset: str, images: int | None) -> int:
        """How many of its first `images` images a dataset has."""
        total = len(self.dataset(dataset))
        return total if images is None else min(total, images)

    def key(self, dataset: str, model: str, images: int | None, tuning: Tuning | None) -> Key:
        """The key of all images at once, whatever the shards."""
        source = Source(dataset, model, images, tuning)
        return _kept(self._keys, source, lambda: self._key(source), lambda key: 0)

    def _key(self, source: Source) -> Key:
        dataset, model, images, tuning, _ = source

        def whole() -> Key:
            trained = self.trained(dataset, model, tuning)
            return {**trained.key, "images": keys.of_dataset(trained.data.head(images))}

        if self.store is None or not _is_shipped(source):
            return whole()
        name = f"keys/{dataset}-{model}/{tuning.key if tuning else 'plain'}"
        told = keys.of_shipped(images, tuning, self.device, self.precision)
        entry = self.store.obtain(name, told, lambda: Entry({}, {"key": dict(whole())}))
        return dict(entry.info["key"])

    def forget(self, pair: Pair) -> None:
        """Load a dataset and its models anew when next asked for: a method may have spoilt them."""
        name = pair.dataset.name
        self.spoilt.add(name)
        for memory in (self._pairs, self._trained, self._keys):
            for key in [key for key in memory if key[0] == name]:
                del memory[key]
        self._datasets.pop(name, None)

    def dataset(self, name: str) -> Dataset | Pictures:
        """The whole dataset, which must have what it is registered to offer."""
        return _kept(self._datasets, name, lambda: _load_dataset(name))

    def trained(self, dataset: str, model: str, tuning: Tuning | None = None) -> Trained:
        """A model with its weights, and the dataset as it sees it."""
        key = dataset, model, tuning
        return _kept(self._trained, key, lambda: self._build(dataset, model, tuning), Trained.size)

    def _build(self, dataset: str, model: str, tuning: Tuning | None) -> Trained:
        raw, spec = self.dataset(dataset), models.get(model)
        built = _built(spec, raw)
        data = seen_by(built, raw, spec.name)
        with _blamed(ModelError, f"model {model!r} on dataset {dataset!r}", "moving it"):
            network = built.network.eval().to(self.device)
        if not spec.embedded:
            network = fitted(network, built.class_names, data, raw.class_names, self.device, spec)
        facts: Mapping[str, Any] = {}
        if tuning is not None:
            network, facts = tuned(network, data, spec, tuning, self.store, self.progress)
        origin = datasets.get(dataset)
        declared = [
            *keys.of_depends(origin.depends, origin.load),
            *keys.of_depends(spec.depends, spec.build),
        ]
        key = {
            **keys.of_trained(_reference(data), spec.build, network, self.device),
            **({"declared": digest(*declared)} if declared else {}),
            **keys.of_precision(self.precision),
            **({"traced": keys.of_tracing(spec.leaf, spec.concrete_args)} if spec.helped else {}),
        }
        return Trained(data, forms_of(network, data, self.device, spec, self.precision), key, facts)

    def _load(self, source: Source) -> Pair:
        trained = self.trained(source.dataset, source.model, source.tuning)
        data = trained.data.part(self._part(source, trained.data))
        return Pair(
            dataset=data,
            model=source.model,
            forms=trained.forms,
            device=self.device,
            key={**trained.key, "images": keys.of_dataset(data)},
            make=lambda: self._make(source, trained.data),
            tuned=trained.facts,
            whole=_reference(trained.data),
            loader=self,
            source=source,
        )

    def _make(self, source: Source, data: Dataset) -> Dataset:
        """The images of a pair; the next shard is decoded meanwhile, if there is one."""
        coming = self._coming.pop(source, None)
        made = coming.result() if coming else in_memory(data.part(self._part(source, data)))
        if source.shard is not None and not isinstance(data.images, Tensor):
            following = source._replace(shard=source.shard + 1)
            part = self._part(following, data)
            self._coming.clear()
            if part.start < part.stop:
                self._coming[following] = _ahead().submit(in_memory, data.part(part))
        return made

    def _part(self, source: Source, data: Dataset) -> slice:
        count = self.count(source.dataset, source.images)
        if source.shard is None:
            return slice(0, count if isinstance(data.images, Tensor) else min(count, BLOCK))
        return slice(source.shard * self.shard, min((source.shard + 1) * self.shard, count))


def seen_by(built: Model, raw: Dataset | Pictures, name: str) -> Dataset:
    """A dataset through the eyes of a model: in its frame, with its mean and std."""
    wanted = built.preprocessing
    if isinstance(raw, Dataset):
        if wanted is None:
            return raw
        if wanted.resize is None and tuple(raw.images.shape[2:]) == wanted.size:
            return replace(raw, mean=wanted.mean, std=wanted.std)
        return view(pictures_of(raw), wanted)
    wanted = wanted or raw.preprocessing
    if wanted is None:
        raise ModelError(
            f"model {name!r} on dataset {raw.name!r}: nothing says what size and normalisation the "
            "network wants; return attrcheck.Model(network, attrcheck.Preprocessing(...))"
        )
    return view(raw, wanted)


def _is_shipped(source: Source) -> bool:
    """Whether all of a pair is in the package, where files are verified by hashes in its code."""
    if not (models.is_built_in(source.model) and datasets.is_built_in(source.dataset)):
        return False
    spec = models.get(source.model)
    return spec.embedded and (source.tuning is None or ships(source.dataset, spec, source.tuning))


def _kept(
    memory: OrderedDict[Any, T],
    key: Any,
    load: Callable[[], T],
    size: Callable[[T], int] = lambda value: LIGHT,
) -> T:
    """What is remembered under a key, else loaded; the oldest is forgotten if all are too heavy."""
    if key not in memory:
        memory[key] = load()
        while len(memory) > KEPT and sum(map(size, memory.values())) > LIGHT:
            memory.popitem(last=False)
    memory.move_to_end(key)
    return memory[key]


def _load_dataset(name: str) -> Dataset | Pictures:
    spec = datasets.get(name)
    with _blamed(DatasetError, f"dataset {name!r}", "loading it"):
        data = received(spec.load(), name)
    if isinstance(data, Pictures):
        offered = ("mask", "training")
    else:
        data, offered = _copied(data), ("masks", "training")
    for part, offer in zip(offered, ("masks", "training"), strict=True):
        if offer in spec.offers and getattr(data, part) is None:
            raise DatasetError(
                f"dataset {name!r} offers {offer!r}, but {type(data).__name__}.{part} is None"
            )
    return data


def _copied(data: Dataset) -> Dataset:
    """The dataset with tensors of its own: whoever made it may hand out the same ones again."""

    def training() -> tuple[Tensor, Tensor]:
        images, labels = data.training()  # type: ignore[misc]
        return images[:].clone(), labels.clone()

    return replace(
        data,
        images=data.images[:].clone(),
        labels=data.labels.clone(),
        masks=None if data.masks is None else data.masks[:].clone(),
        training=training if data.training else None,
    )


def _built(spec: ModelSpec, data: Dataset | Pictures) -> Model:
    """The network with its weights; a copy, as a builder may keep its own."""
    where = f"model {spec.name!r} on dataset {data.name!r}"
    with _blamed(ModelError, where, "building it"):
        model = spec.make(data)
    if not isinstance(model.network, nn.Module):
        raise ModelError(f"{where}: {_unlike_a_network(model.network)}")
    network = copy.deepcopy(model.network)
    if spec.embedded:
        load_weights(network, data.name, spec.name)
    return replace(model, network=network)


def _unlike_a_network(built: Any) -> str:
    """What to say of what a builder returned in place of a network."""
    if isinstance(built, Mapping):
        return "its function returned weights; return the network after load_state_dict(weights)"
    if isinstance(built, type):
        return f"its function returned the class {built.__name__}; return {built.__name__}(...)"
    if built is None:
        return "its function returned None; does it lack a `return`?"
    return f"its function returned a {type(built).__name__}, not a torch.nn.Module; wrap it in one"


@contextmanager
def _blamed(kind: type[AttrcheckError], where: str, doing: str) -> Iterator[None]:
    """What somebody else's code raises is an error of that dataset or model, with its line."""
    try:
        yield
    except Exception as error:
        if isinstance(error, AttrcheckError) or exhausted(error):
            raise
        line = own_line(error)
        text = " ".join(text_of(error).split())
        raise kind(
            f"{where}: {doing} raised {type(error).__name__}: {text}{line and f' (at {line})'}"
        ) from error


def _reference(data: Dataset) -> Dataset:
    """What a method is handed of a dataset: all of it, or of pictures the first block."""
    return data if isinstance(data.images, Tensor) else data.head(BLOCK)


@cache
def _ahead() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "attrcheck-ahead")
