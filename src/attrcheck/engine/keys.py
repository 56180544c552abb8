"""Keys: all that decides a value, and nothing else. What makes a record stale is told here.

A key is a few named parts, each a short hash or a plain value; an entry of the store is found by
the hash of all of them, and keeps them, so that it can be told which part has changed since.

Code counts by its syntax trees, without comments and docstrings: that of a method or protocol with
whatever it uses (see `store.closures`), and that of the engine itself, ENGINE, in every key.
Libraries count by version, data and weights by their bytes, settings by value.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attrcheck.contracts import Dataset, Method, Pixels, Precision, Protocol, Shared, Tuning
from attrcheck.engine.settings import BLOCK
from attrcheck.errors import AttrcheckError, MethodError, text_of
from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.removal import removal as removals
from attrcheck.store.digests import digest
from attrcheck.store.encoding import Key
from attrcheck.store.fingerprints import files_of, of_code, of_module, of_tree, of_value
from attrcheck.store.places import version
from attrcheck.tensors.batching import QUICK_ELEMENTS
from attrcheck.training import WEIGHTS
from attrcheck.training.finetuning import finetune

ENGINE = (
    "attrcheck.contracts",
    "attrcheck.datasets.pixels",
    "attrcheck.engine.attribution",
    "attrcheck.engine.loading",
    "attrcheck.engine.observing",
    "attrcheck.engine.pairs",
    "attrcheck.engine.retraining",
    "attrcheck.engine.shards",
    "attrcheck.protocols.responses",
    "attrcheck.tensors.batching",
    "attrcheck.tensors.transfers",
)
"""What is done to images, maps and rows whatever the method and the protocol: in every key."""
PRECISION = "precision"
"""The part of a key that tells with how many digits predictors compute."""
DECIDING = (
    *("adapters", "checks", "contracts", "datasets", "engine", "graph", "methods", "models"),
    *("isolation", "protocols", "ranks", "removal", "store/seeds", "tallies", "tensors"),
    "training",
)
"""The rooms and modules that may decide what a check finds, or what a case comes to."""
_lessons: WeakKeyDictionary[Callable[[], Any], str] = WeakKeyDictionary()
"""Hashes of training splits, by what makes them."""


@functools.cache
def engine() -> str:
    """The code of the engine's own part."""
    return digest(*map(of_module, ENGINE))


def of_dataset(data: Dataset) -> str:
    """All of a dataset that an evaluation sees."""
    images, masks = _of_pixels(data.images), _of_pixels(data.masks)
    return digest(images, data.labels, masks, data.classes, data.mean, data.std, data.ids)


def _of_pixels(pixels: Tensor | Pixels | None) -> Any:
    """A tensor as it is; what is made on demand by what tells it from any other."""
    return pixels if pixels is None or isinstance(pixels, Tensor) else pixels.fingerprint()


def of_network(network: nn.Module) -> str:
    """A network as it is: weights, all buffers, settings of its layers, and its own code."""
    return of_value(network)


def of_weights(network: nn.Module) -> str:
    """The parameters and buffers of a network, whatever code or version of torch runs them."""
    return digest(*sorted(network.state_dict().items(), key=lambda item: item[0]))


def of_training(data: Dataset) -> str:
    """The training split of a dataset; it is made when it is asked for, so here only once."""
    if data.training is None:
        return ""
    if data.training not in _lessons:
        images, labels = data.training()
        _lessons[data.training] = digest(_of_pixels(images), labels)
    return _lessons[data.training]


def of_trained(
    reference: Dataset, build: Callable[..., Any], network: nn.Module, device: str
) -> Key:
    """A network with its weights as it is prepared on a kind of device, and what methods may see.

    `reference`: what they are handed of the dataset.
    """
    return {
        **of_preparation(),
        "dataset": of_dataset(reference),
        "model": of_code(build),
        "network": of_network(network),
        "device": torch.device(device).type,
        "torch": str(torch.__version__),
    }


def of_shipped(images: int | None, tuning: Tuning | None, device: str, precision: Precision) -> Key:
    """What the key of a pair that ships with the package is made from, told without loading it."""
    return {
        "bytes": of_deciding_bytes(),
        "libraries": digest(*map(metadata.version, ("numpy", "pillow", "torch"))),
        "count": str(images),
        "tuning": of_value(tuning),
        "device": torch.device(device).type,
        **of_precision(precision),
    }


def of_precision(precision: Precision) -> Key:
    """With how many digits predictors compute, if with fewer than usual."""
    return {} if precision == "float32" else {PRECISION: precision}


def of_preparation() -> Key:
    """What is done to every network and every image, whatever they are."""
    return {
        "engine": engine(),
        "preparation": digest(of_code(prepare), of_code(predictor_of)),
        "batches": digest(QUICK_ELEMENTS, BLOCK),
    }


def of_tracing(leaf: Sequence[type[nn.Module] | str], concrete_args: Mapping[str, Any]) -> str:
    """What helps to trace a network, and so decides what its graph is made of."""
    names = [part if isinstance(part, str) else part.__qualname__ for part in leaf]
    return digest(*names, of_value(dict(concrete_args)))


def of_tuned(network: nn.Module, data: Dataset, build: Callable[..., Any], tuning: Tuning) -> Key:
    """A fine-tuned model: what it was before, and what it learns from."""
    return {
        "network": of_network(network),
        "dataset": of_dataset(data),
        "model": of_code(build),
        "finetuning": of_code(finetune),
        "training": of_training(data),
        "tuning": of_value(tuning),
        "torch": str(torch.__version__),
    }


def of_method(method: Method, base: Method | None) -> str:
    """A method, and the one whose maps it takes the absolute values of."""
    declared = of_depends(method.depends, method.attribute)
    own = digest(method.name, of_code(method.attribute), declared, method.prepared)
    return digest(own, of_method(base, None)) if base else own


def of_depends(depends: Sequence[str], thing: Callable[..., Any]) -> list[tuple[str, str]]:
    """What a thing is declared to depend on beside its code; files are found from where it is."""
    code = getattr(thing, "__code__", getattr(type(thing).__call__, "__code__", None))
    folder = Path(code.co_filename if code else ".").parent
    return [(text, _declared(text, folder)) for text in sorted(depends)]


def _declared(text: str, folder: Path) -> str:
    kind, _, name = text.partition(":")
    if kind == "file":
        path = folder / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "missing"
    if kind == "env":
        return os.environ.get(name, "")
    if kind == "package":
        return version(name)
    raise AttrcheckError(
        f'depends={text!r}: say what it is, as "file:PATH", "env:NAME" or "package:NAME"'
    )


def of_observer(observer: Protocol | Shared) -> str:
    """The code that observes, and that of the removal which a field of this name asks for."""
    name = getattr(observer, "removal", None)
    if not name:
        return digest(of_code(type(observer)), "")
    removal = removals.get(name)
    declared = of_depends(removal.depends, removal.remove)
    return digest(of_code(type(observer)), of_code(removal.remove), *declared)


def of_protocol(protocol: Protocol) -> list[Any]:
    """A protocol with all its settings, and those whose rows it is reduced from."""
    parts = [[name, of_protocol(part)] for name, part in sorted(protocol.parts.items())]
    return [of_observer(protocol), of_settings(protocol), parts]


def of_settings(observer: Protocol | Shared) -> str:
    """The values of all fields; of what is not a dataclass, those of its attributes."""
    names = getattr(observer, "__dataclass_fields__", None)
    if names is None:
        return of_value(observer)
    return of_value({name: getattr(observer, name) for name in names})


def of_refusal(pair: Key, method: Method) -> Key:
    """Whether a method applies to the model of a pair, whatever the images."""
    model = {name: part for name, part in pair.items() if name not in ("images", PRECISION)}
    return {**model, "applies": of_applying(method)}


def of_applying(method: Method) -> str:
    """What says where a method applies, and which form of a network it looks at."""
    declared = of_depends(method.depends, method.attribute)
    with identifying(method):
        return digest(of_code(method.not_applicable), declared, method.prepared)


@contextmanager
def identifying(method: Method) -> Iterator[None]:
    """Whatever cannot be hashed is an error of the method that holds it."""
    try:
        yield
    except (AttrcheckError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise MethodError(
            f"method {method.name!r}: what it holds cannot be told from anything else, so that "
            f"its results cannot be kept: {text_of(error)}"
        ) from error


def of_maps(pair: Key, method: str, seed: int) -> Key:
    """The maps of a method for a pair; no predictor is asked for them."""
    network = {name: part for name, part in pair.items() if name != PRECISION}
    return {**network, "method": method, "seed": str(seed)}


def of_shared(pair: Key, shared: Shared, count: int, seed: int) -> Key:
    """What a protocol observes without a map, of so many images."""
    return {
        **pair,
        "protocol": of_observer(shared),
        "settings": of_settings(shared),
        "count": str(count),
        "seed": str(seed),
    }


def of_rows(
    pair: Key, method: str, protocol: Protocol, count: int, seed: int, training: str = ""
) -> Key:
    """What a protocol observed of a method, on so many images; `training`: what it learns from."""
    return {
        **pair,
        **of_maps(pair, method, seed),
        "training": training,
        "protocol": of_observer(protocol),
        "settings": protocol.observation or of_settings(protocol),
        "count": str(count),
    }


def of_verdict(code: str, **parts: Any) -> Key:
    """What a check found: checks look names up at run time, so all code that has a say counts."""
    known = {name: of_value(part) for name, part in parts.items()}
    return {**known, "code": code, "torch": str(torch.__version__)}


def of_deciding_code() -> str:
    """All code that may decide what a check finds, and the facts about shipped weights."""
    facts = (path.read_bytes() for path in sorted(WEIGHTS.rglob("*.json")))
    return digest(of_tree(DECIDING), *facts)


@functools.cache
def of_deciding_bytes() -> str:
    """The same, comments and all: it takes no parsing, so it tells at once that nothing changed."""
    paths = [*files_of(DECIDING), *sorted(WEIGHTS.rglob("*.json"))]
    return digest(*(path.read_bytes() for path in paths), sys.version)
