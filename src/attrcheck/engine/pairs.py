"""Pairs: some images of a dataset and a model, prepared, checked, on the device."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import (
    Batch,
    Dataset,
    Disconnection,
    Later,
    Method,
    Precision,
    Protocol,
    Remote,
    Rows,
    Tuning,
)
from attrcheck.datasets.pixels import in_memory
from attrcheck.engine.attribution import attribute_batch
from attrcheck.engine.plausibility import check_logits, refusal
from attrcheck.engine.settings import BLOCK
from attrcheck.errors import AttrcheckError, ModelError
from attrcheck.graph.disconnecting import disconnected, laid_out
from attrcheck.graph.predictor import Predictor, predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.models import ModelSpec
from attrcheck.store.digests import digest
from attrcheck.store.encoding import Key
from attrcheck.store.fingerprints import of_code, of_value
from attrcheck.store.seeds import derive
from attrcheck.tensors.batching import exhausted, quick_size
from attrcheck.tensors.transfers import sent

if TYPE_CHECKING:
    from attrcheck.engine.loading import Loader

PIXELS = ("images", "labels")
"""The parts of a pair that come of its dataset, unless they are changed."""
NETWORKS = ("network", "original", "predictor")
"""The parts that come of its model, unless they are changed."""


class Source(NamedTuple):
    """What a pair is loaded by; shard: which of its images, None: all."""

    dataset: str
    model: str
    images: int | None
    tuning: Tuning | None
    shard: int | None = None


@dataclass(frozen=True, eq=False)
class Forms:
    """A network in three forms, each a copy that is made when it is first asked for.

    images: like those that it will see. spec: what may help to trace it. precision: of the
    predictor.
    """

    built: nn.Module
    images: Tensor
    spec: ModelSpec | None = None
    precision: Precision = "float32"

    @cached_property
    def network(self) -> nn.Module:
        """As methods take it apart."""
        return prepare(self.built, self.images, **self._help)

    @cached_property
    def original(self) -> nn.Module:
        """As its author built it."""
        return copy.deepcopy(self.built).eval()

    @cached_property
    def predictor(self) -> Predictor:
        """As protocols ask it."""
        return predictor_of(self.built, self.images, precision=self.precision, **self._help)

    @property
    def _help(self) -> dict[str, Any]:
        spec = self.spec
        return {"leaf": spec.leaf, "concrete_args": spec.concrete_args} if spec else {}


def forms_of(
    network: nn.Module,
    data: Dataset,
    device: str,
    spec: ModelSpec | None = None,
    precision: Precision = "float32",
) -> Forms:
    """A network in its three forms, for images of the size that the dataset has."""
    return Forms(network, noise_like(data, device), spec, precision)


def noise_like(data: Dataset, device: str) -> Tensor:
    """Two images without any sense, of the size that the dataset has, so that none is read."""
    noise = torch.randn(2, *data.images.shape[1:], generator=torch.Generator().manual_seed(0))
    return noise.to(device)


@dataclass(frozen=True, eq=False)
class Pair:
    """A dataset x model, ready; see `contracts.Pair`.

    make: gives the dataset with its images in memory, when they are first asked for. whole: what
    stands for all of the dataset, if it has more images than are used. loader: where it came from.
    source: what that was asked for. changes: what was put in place of its parts since.
    """

    dataset: Dataset
    model: str
    forms: Forms
    device: str
    key: Key
    make: Callable[[], Dataset]
    tuned: Mapping[str, Any] = field(default_factory=dict)
    whole: Dataset | None = None
    loader: Loader | None = None
    source: Source | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def made(self) -> Dataset:
        """The dataset with its images and masks in memory."""
        return self.make()

    @cached_property
    def images(self) -> Tensor:
        """All images, normalised, on the device."""
        images: Tensor | None = self.changes.get("images")
        if images is not None:
            return images
        return self.made.normalise(self.made.images[:].to(self.device))

    @cached_property
    def labels(self) -> Tensor:
        """The labels, on the device."""
        labels: Tensor = self.changes.get("labels", self.dataset.labels)
        return labels.to(self.device)

    @property
    def network(self) -> nn.Module:
        """Prepared, for methods to take apart."""
        return cast(nn.Module, self._form("network"))

    @property
    def original(self) -> nn.Module:
        """As its author built it."""
        return cast(nn.Module, self._form("original"))

    @property
    def predictor(self) -> Predictor:
        """For protocols to ask."""
        return cast(Predictor, self._form("predictor"))

    def _form(self, name: str) -> Any:
        changed = self.changes.get(name)
        if changed is None:
            return getattr(self.forms, name)
        return changed.value if isinstance(changed, Later) else changed

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
        for first in range(0, end, BLOCK):
            last = min(first + BLOCK, end)
            yield from (slice(at, min(at + size, last)) for at in range(first, last, size))

    def batch(self, part: slice, seed: int, intact: Rows) -> Batch:
        """Some of the images, as a protocol gets them."""
        masks = self.made.masks
        return Batch(
            images=self.images[part],
            labels=self.labels[part],
            seeds=self.seeds(part, seed, "ties"),
            intact={name: row[part] for name, row in intact.items()},
            masks=None if masks is None else sent(masks[part], self.images.device),
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
        return replace(self.changed(changes), key=key)

    def changed(self, changes: Mapping[str, Any]) -> Pair:
        """The pair with other parts, which no key tells yet; pictures are not read again."""
        before = dict(self.changes)
        parts = {name: part for name, part in changes.items() if name not in PIXELS + NETWORKS}
        if "dataset" in parts:
            parts["make"] = partial(in_memory, parts["dataset"])
            before = {name: part for name, part in before.items() if name not in PIXELS}
        else:
            parts["make"] = lambda: self.made
        return replace(self, changes={**before, **changes}, **parts)

    def elsewhere(self, dataset: str, images: int) -> Pair:
        """The same model on the first images of another dataset."""
        if self.loader is None:
            raise ModelError(f"model {self.model!r} is not registered, so it has one dataset only")
        return self.loader.pair(dataset, self.model, images)


def pair_of(
    network: nn.Module,
    data: Dataset,
    model: str,
    device: str,
    precision: Precision = "float32",
) -> Pair:
    """A network in its three forms and the images as it wants them; nothing is put on record."""
    return Pair(
        dataset=data,
        model=model,
        forms=forms_of(network, data, device, precision=precision),
        device=device,
        key={},
        make=partial(in_memory, data),
    )


def arranged(protocol: Protocol, pair: Pair) -> Pair:
    """The pair with the images, and networks, that the protocol makes of its own, if it does."""
    return _arranged(protocol, pair) if protocol.arranges else pair


@lru_cache(maxsize=2)
def _arranged(protocol: Protocol, pair: Pair) -> Pair:
    how, networks = protocol.disconnection, {}
    code = [of_code(type(protocol))]
    if how is not None:
        networks = _disconnected(pair, how)  # first: it may refuse
        code.append(of_code(disconnected))
    data = protocol.arrange(pair)
    name = f"{type(protocol).__name__}.{digest(*code, of_value(protocol))}"
    return pair.altered(name, dataset=data, whole=data, **networks)


def _disconnected(pair: Pair, how: Disconnection) -> dict[str, Later]:
    """Networks that see one cell of a grid, by name; NotApplicableError if there can be none."""
    images = pair.images[:2]

    def make() -> Forms:
        built = disconnected(pair.network, images, how)
        grids = laid_out(images, how.side)
        return Forms(built, grids, pair.forms.spec, pair.forms.precision)

    forms = Later(make)
    if not how.apart:
        forms.value  # noqa: B018  # whether it can be cut
    return {name: Later(partial(_form, forms, name)) for name in NETWORKS}


def _form(forms: Later, name: str) -> Any:
    return getattr(forms.value, name)


def check(pair: Pair) -> None:
    """Raise ModelError unless the network maps images to finite logits of the dataset's classes."""
    images, data = pair.images[:2], pair.dataset
    where = f"model {pair.model!r} on dataset {data.name!r}"
    try:
        with torch.inference_mode():
            output = pair.predictor(images)
    except Exception as error:
        if isinstance(error, AttrcheckError) or exhausted(error):
            raise
        raise refusal(error, pair.forms.built, images, where) from error
    check_logits(output, len(images), data.classes, where)
