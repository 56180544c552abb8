"""Arrange a suite: bind its names to what lies in a data folder and in caches; say what is missing.

A name that the project registers, or that a table or an option gives, is used as it is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from attrcheck.contracts import Dataset, Model, Pictures, Preprocessing
from attrcheck.datasets import dataset as datasets
from attrcheck.errors import AttrcheckError
from attrcheck.models import imagenet
from attrcheck.models import model as models
from attrcheck.models.bagnet33 import bagnet33
from attrcheck.models.bcos_resnet import bcos_resnet
from attrcheck.papers import WEIGHTS, Network, Source, Suite, SuiteError, load, names
from attrcheck.specs import Spec, anchored, parse

SUFFIXES = (".safetensors", ".pth", ".pt", ".pth.tar")
"""Of files of weights, best first."""
HERE = "attrcheck"
"""The prefix of architectures that no library has."""
IMAGENET = Preprocessing(
    size=(224, 224),
    mean=(0.485, 0.456, 0.406),
    std=(0.229, 0.224, 0.225),
    resize=256,
)
CACHES = {
    "torchvision": "attrcheck.adapters.torchvision_models",
    "timm": "attrcheck.adapters.timm_models",
}
"""The modules that know where a library keeps its public weights."""

_SPECS: dict[tuple[str, str], str] = {}
"""What a model of a suite is on a dataset, by their names. Not held by what is registered, so that
new weights for one dataset leave the records of another as they are."""


@dataclass(frozen=True)
class Gap:
    """Something that is not there: what it is, its place in the data folder, and what to do."""

    what: str
    where: str
    do: str


@dataclass(frozen=True)
class Arrangement:
    """What of a suite is there, in a data folder: names of datasets and models; and what is not."""

    suite: Suite
    data: Path
    datasets: tuple[str, ...]
    models: tuple[str, ...]
    gaps: tuple[Gap, ...]


def arrange(suite: Suite, data: Path) -> Arrangement:
    """Bind what is there of a suite."""
    gaps = [gap for source in suite.sources for gap in _bind(source, data, bool(suite.tuned))]
    for network in suite.networks:
        gaps += _register(network, data)
    there = [source.name for source in suite.sources if source.name in datasets]
    usable = [
        network.name
        for network in suite.networks
        if network.name in models and any(models.get(network.name).knows(name) for name in there)
    ]
    return Arrangement(suite, data, tuple(there), tuple(usable), tuple(gaps))


def bind(name: str, data: Path) -> None:
    """Let the name of a dataset of any suite stand for what lies in a data folder."""
    sources = [source for suite in map(load, names()) for source in suite.sources]
    for source in sources:
        if source.name == name:
            for gap in _bind(source, data, tuned=False):
                raise SuiteError(f"there is no {gap.where} in {data}: {gap.do}")


def weights_path(data: Path, dataset: str, model: str) -> Path:
    """Where the weights of a model for a dataset lie, or should lie."""
    path = data / WEIGHTS / dataset / model
    files = [path.with_name(path.name + suffix) for suffix in SUFFIXES]
    return next((file for file in files if file.is_file()), files[0])


def _bind(source: Source, data: Path, tuned: bool) -> list[Gap]:
    """Let the name of a dataset stand for the first place where it lies."""
    if source.name in datasets:
        return []
    for place in source.places:
        if (data / place.needs).exists():
            datasets.bind(source.name, anchored(place.spec, data))
            if tuned and source.train and not (data / source.train).exists():
                what = f"training images of {source.name}"
                return [Gap(what, source.train, "put them there: models are tuned")]
            return []
    where = " or ".join(place.needs for place in source.places)
    return [Gap(f"dataset {source.name}", where, source.get)]


def _register(network: Network, data: Path) -> list[Gap]:
    """Register a model for the datasets that there are weights for."""
    if network.name in models:
        return []
    if not network.spec:
        return [Gap(f"model {network.name}", "conftest.py, or a table", network.get)]
    specs = {name: _spec(network, name, data) for name in network.datasets}
    known = {name: text for name, text in specs.items() if isinstance(text, str)}
    if known:
        _SPECS.update({(network.name, name): text for name, text in known.items()})
        models(network.name, datasets=",".join(known))(partial(build, network.name))
    return [gap for gap in specs.values() if isinstance(gap, Gap)]


def _spec(network: Network, dataset: str, data: Path) -> str | Gap:
    """A spec with weights for a dataset: those of a file, else public ones, if they are there."""
    file = weights_path(data, dataset, network.name)
    if file.is_file():
        return f"{network.spec}@{file}"
    where = file.relative_to(data).as_posix()
    what, public = f"weights of {network.name} on {dataset}", network.public.get(dataset)
    if public is None:
        train = f"attrcheck train --datasets {dataset} --models {network.spec} --data {data}"
        return Gap(what, where, network.get or train)
    try:
        _, spec = parse(public)
        assert spec is not None
        _cached(spec)
    except AttrcheckError as error:
        return Gap(what, where, str(error))
    return public


def _cached(spec: Spec) -> None:
    """Raise an error that says what to do unless public weights are in the cache of a library."""
    name, _, weights = spec.rest.partition("@")
    importlib.import_module(CACHES[spec.prefix]).cached(name, weights)


def build(name: str, data: Dataset | Pictures) -> Model:
    """The model of a suite for one of its datasets."""
    _, spec = parse(_SPECS[name, data.name])
    assert spec is not None
    if spec.prefix == HERE:
        architecture, _, file = spec.rest.partition("@")
        return Model(ARCHITECTURES[architecture](Path(file)), IMAGENET, imagenet.synsets())
    return models.get(str(spec)).make(data)


ARCHITECTURES: dict[str, Callable[[Path], Any]] = {
    "bagnet33": bagnet33,
    "bcos_resnet50": lambda file: bcos_resnet(file, IMAGENET.mean, IMAGENET.std, depth=50),
}
"""Those of `attrcheck:`, by name."""
