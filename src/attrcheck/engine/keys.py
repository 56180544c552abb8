"""Keys: all that decides a value, and nothing else. What makes a record stale is told here.

Code counts by its syntax trees, without comments and docstrings: that of a method or protocol with
whatever it uses (see `store.fingerprints`), and that of the engine itself, ENGINE, in every key.
Libraries count by version, data and weights by their bytes, settings by value.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from attrcheck.contracts import Dataset, Method, Protocol, Shared, Tuning
from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.removal import removal as removals
from attrcheck.store.fingerprints import digest, of_code, of_module, of_tree, of_value
from attrcheck.tensors.batching import QUICK_ELEMENTS
from attrcheck.training import WEIGHTS
from attrcheck.training.finetuning import finetune

ENGINE = (
    "attrcheck.contracts",
    "attrcheck.engine.attribution",
    "attrcheck.engine.observing",
    "attrcheck.engine.pairs",
    "attrcheck.engine.retraining",
    "attrcheck.protocols.responses",
    "attrcheck.tensors.batching",
)
"""What is done to images, maps and rows whatever the method and the protocol: in every key."""
DECIDING = (
    *("adapters", "checks", "contracts", "datasets", "engine", "graph", "methods", "models"),
    *("protocols", "ranks", "removal", "tensors", "training"),
)
"""The rooms and modules that may decide what a check finds."""


@functools.cache
def engine() -> str:
    """The code of the engine's own part."""
    return digest(*map(of_module, ENGINE))


def of_dataset(data: Dataset) -> str:
    """All of a dataset that an evaluation sees."""
    return digest(data.images, data.labels, data.masks, data.classes, data.mean, data.std, data.ids)


def of_pair(
    data: Dataset, whole: Dataset, build: Callable[..., Any], network: nn.Module, device: str
) -> str:
    """The images, and the network with its weights, as they are prepared on a kind of device."""
    return digest(
        engine(),
        of_dataset(data),
        of_dataset(whole),
        of_code(build),
        of_code(prepare),
        of_code(predictor_of),
        torch.device(device).type,
        torch.__version__,
        QUICK_ELEMENTS,
        *(part for item in network.state_dict().items() for part in item),
    )


def of_tuned(network: nn.Module, data: Dataset, build: Callable[..., Any], tuning: Tuning) -> str:
    """A fine-tuned model: what it was before, and what it learns from."""
    return digest(
        dict(network.state_dict()),
        of_dataset(data),
        of_code(build),
        of_code(finetune),
        of_code(data.training) if data.training else "",
        tuning,
        torch.__version__,
    )


def of_method(method: Method, base: Method | None) -> str:
    """A method, and the one whose maps it takes the absolute values of."""
    own = digest(method.name, of_code(method.attribute))
    return digest(own, of_method(base, None)) if base else own


def of_observer(observer: Protocol | Shared) -> str:
    """The code that observes, and that of the removal which a field of this name asks for."""
    name = getattr(observer, "removal", None)
    return digest(of_code(type(observer)), of_code(removals.get(name).remove) if name else "")


def of_settings(observer: Protocol | Shared) -> str:
    """The values of all fields; of what is not a dataclass, its repr."""
    names = getattr(observer, "__dataclass_fields__", None)
    if names is None:
        return of_value(repr(observer))
    return of_value({name: getattr(observer, name) for name in names})


def of_maps(pair: str, method: str, seed: int) -> str:
    """The maps of a method for a pair, both given by their own keys."""
    return digest(pair, method, seed)


def of_shared(pair: str, shared: Shared, images: int, seed: int) -> str:
    """What a protocol observes without a map."""
    return digest(pair, of_observer(shared), of_settings(shared), images, seed)


def of_rows(pair: str, method: str, protocol: Protocol, images: int, seed: int) -> str:
    """What a protocol observed of a method."""
    settings = protocol.observation or of_settings(protocol)
    return digest(pair, method, of_observer(protocol), settings, images, seed)


def of_verdict(*parts: Any) -> str:
    """What a check found: checks look names up at run time, so all code that has a say counts."""
    return digest(_deciding_code(), *parts, torch.__version__)


@functools.cache
def _deciding_code() -> str:
    return digest(
        of_tree(DECIDING), *(path.read_bytes() for path in sorted(WEIGHTS.rglob("*.json")))
    )
