"""Classifiers of torchvision: `torchvision:resnet50`, with weights by name, from a file or random.

Weights are taken from torch's own cache, and never downloaded here.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlparse

import torch
from torch import nn

from attrcheck.adapters import checkpoints
from attrcheck.adapters.checkpoints import WeightsError
from attrcheck.adapters.libraries import choose
from attrcheck.adapters.vision import torchvision
from attrcheck.contracts import Dataset, Model, Pictures, Preprocessing
from attrcheck.errors import suggest, text_of
from attrcheck.models import ModelSpec, imagenet

models: Any = torchvision.models

AUXILIARY = {"googlenet": "aux1.", "inception_v3": "AuxLogits."}
"""Networks with heads for training only, and how the names of their weights begin."""


def resolve(rest: str) -> ModelSpec:
    """The model `torchvision:NAME`, `@WEIGHTS`, `@FILE` or `@random`."""
    name, weights = checkpoints.split(rest)
    known = dict.fromkeys(models.list_models(module=models))
    choose("torchvision", "classifier", known, name)
    depends = ["package:torchvision"]
    if checkpoints.is_path(weights):
        path = Path(weights).expanduser().absolute()
        depends.append(f"file:{path}")
        return ModelSpec(f"torchvision:{rest}", partial(_from_file, name, path), depends=depends)
    if weights == "random":
        return ModelSpec(f"torchvision:{rest}", partial(_random, name), depends=depends)
    chosen = _weights(name, weights or "DEFAULT")
    build = partial(_from_cache, name, chosen.name)
    return ModelSpec(f"torchvision:{rest}", build, depends=depends)


def preprocessing(transforms: Any) -> Preprocessing:
    """What `weights.transforms()` does to a picture."""
    height, width = (*transforms.crop_size, *transforms.crop_size)[:2]
    resize = transforms.resize_size
    return Preprocessing(
        size=(height, width),
        mean=tuple(transforms.mean),
        std=tuple(transforms.std),
        resize=resize[0] if len(resize) == 1 else (resize[0], resize[1]),
        interpolation=transforms.interpolation.value,
    )


def cached(name: str, weights: str) -> Path:
    """The file of public weights in torch's cache; WeightsError says what to do if it is not."""
    chosen = _weights(name, weights or "DEFAULT")
    folder = Path(torch.hub.get_dir(), "checkpoints")
    path = folder / PurePosixPath(urlparse(chosen.url).path).name
    if not path.is_file():
        raise WeightsError(
            f"torchvision:{name} has no weights {chosen.name} in {folder}: download {chosen.url} "
            f"to there, give a file (torchvision:{name}@FILE), or try it with @random"
        )
    return path


def _from_cache(name: str, weights: str, data: Dataset | Pictures) -> Model:
    path, chosen = cached(name, weights), _weights(name, weights)
    try:
        network = models.get_model(name, weights=chosen, progress=False)
    except Exception as error:
        raise WeightsError(
            f"{path} cannot be read as the weights {weights} of torchvision:{name}; download "
            f"{chosen.url} again: {text_of(error)}"
        ) from error
    return Model(network.eval(), preprocessing(chosen.transforms()), imagenet.synsets())


def _from_file(name: str, path: Path, data: Dataset | Pictures) -> Model:
    network, classes = checkpoints.load(path, partial(_network, name))
    # By default a network has ImageNet's classes, and few others have as many.
    names = imagenet.synsets() if classes is None else ()
    return Model(network.eval(), _default(name), checkpoints.class_names(path) or names)


def _random(name: str, data: Dataset | Pictures) -> Model:
    network = checkpoints.seeded(lambda: _network(name, data.classes, ()))
    return Model(network.eval(), _default(name))


def _network(name: str, classes: int | None, weights: Collection[str]) -> nn.Module:
    """The network without its weights, of which the names are known if there will be any."""
    settings: dict[str, Any] = {} if classes is None else {"num_classes": classes}
    if name in AUXILIARY:
        # As torchvision builds them for weights of its own.
        trained = any(AUXILIARY[name] in weight for weight in weights)
        settings |= {"aux_logits": trained, "transform_input": True, "init_weights": not weights}
    network: nn.Module = models.get_model(name, weights=None, **settings)
    return network


def _default(name: str) -> Preprocessing:
    return preprocessing(models.get_model_weights(name).DEFAULT.transforms())


def _weights(name: str, weights: str) -> Any:
    """The entry of torchvision for these weights, which must be a classifier's."""
    known = {entry.name: entry for entry in models.get_model_weights(name)}
    known["DEFAULT"] = models.get_model_weights(name).DEFAULT
    if weights not in known:
        raise WeightsError(
            f"torchvision:{name} has no weights {weights!r}; "
            + suggest(weights, [*known, "random", "FILE.safetensors"])
        )
    if not known[weights].meta["categories"]:
        raise WeightsError(f"the weights {weights} of torchvision:{name} classify nothing")
    return known[weights]
