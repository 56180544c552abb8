"""Classifiers of timm: `timm:resnet50.a1_in1k`, its weights, those of a file, or random ones.

Weights are taken from the caches of the Hugging Face hub and of torch, and never downloaded here.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlparse

import torch
from torch import nn

from attrcheck.adapters import checkpoints, hub
from attrcheck.adapters.checkpoints import WeightsError
from attrcheck.adapters.libraries import choose
from attrcheck.adapters.vision import timm
from attrcheck.contracts import Dataset, Model, Pictures, Preprocessing
from attrcheck.errors import ModelError, text_of
from attrcheck.models import ModelSpec

FILES = ("model.safetensors", "pytorch_model.bin")
"""What weights are called on the hub, best first."""


def resolve(rest: str) -> ModelSpec:
    """The model `timm:NAME`, `@FILE` or `@random`."""
    name, weights = checkpoints.split(rest)
    architecture, dot, _ = name.partition(".")
    choose("timm", "model", dict.fromkeys(timm.list_models()), architecture)
    if dot:
        tags = timm.list_models(f"{architecture}.*", pretrained=True)
        choose("timm", "model", dict.fromkeys(tags), name)
    depends = ["package:timm"]
    if checkpoints.is_path(weights):
        path = Path(weights).expanduser().absolute()
        depends.append(f"file:{path}")
        return ModelSpec(f"timm:{rest}", partial(_from_file, name, path), depends=depends)
    if weights == "random":
        return ModelSpec(f"timm:{rest}", partial(_random, name), depends=depends)
    if weights:
        raise WeightsError(
            f"timm:{rest}: behind the @ stands a file or `random`; timm's own weights are part of "
            f"the name, as in timm:{_example(architecture)}"
        )
    return ModelSpec(f"timm:{rest}", partial(_from_cache, name), depends=depends)


def preprocessing(name: str, config: dict[str, Any]) -> Preprocessing:
    """What timm's evaluation transform for this data config does to a picture."""
    _, height, width = config["input_size"]
    mode = config["crop_mode"]
    scaled = tuple(math.floor(side / config["crop_pct"]) for side in (height, width))
    if mode not in ("center", "squash") or (mode == "center" and height != width):
        raise ModelError(
            f"timm:{name} wants pictures of {height} x {width} in crop mode {mode!r}, which is not "
            "resize and crop; register it with @attrcheck.model and images of your own"
        )
    return Preprocessing(
        size=(height, width),
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
        resize=scaled[0] if mode == "center" else (scaled[0], scaled[1]),
        interpolation=config["interpolation"],
    )


def _from_cache(name: str, data: Dataset | Pictures) -> Model:
    source = cached(name)
    try:
        network = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=source)
    except Exception as error:
        raise WeightsError(
            f"{source['file']} cannot be read as the weights of timm:{name}; download them again: "
            f"{text_of(error)}"
        ) from error
    return _model(name, network, _class_names(network))


def _from_file(name: str, path: Path, data: Dataset | Pictures) -> Model:
    network, _ = checkpoints.load(path, partial(_network, name))
    return _model(name, network, checkpoints.class_names(path) or _class_names(network))


def _random(name: str, data: Dataset | Pictures) -> Model:
    return _model(name, checkpoints.seeded(lambda: _network(name, data.classes)))


def _network(name: str, classes: int | None, weights: Collection[str] = ()) -> nn.Module:
    settings = {} if classes is None else {"num_classes": classes}
    network: nn.Module = timm.create_model(name, pretrained=False, **settings)
    return network


def _model(name: str, network: nn.Module, names: tuple[str, ...] = ()) -> Model:
    config = timm.data.resolve_model_data_config(network)
    return Model(network.eval(), preprocessing(name, config), names)


def _class_names(network: Any) -> tuple[str, ...]:
    """The synsets of the part of ImageNet that has as many classes, if there is one."""
    subset = timm.data.infer_imagenet_subset(network)
    return tuple(timm.data.ImageNetInfo(subset).label_names()) if subset else ()


def cached(name: str, weights: str = "") -> dict[str, Any]:
    """Where weights are in a cache, as timm wants to be told; WeightsError if they are not."""
    config = timm.get_pretrained_cfg(name)
    otherwise = f"give a file (timm:{name}@FILE), or try it with @random"
    if config is None or not config.has_weights:
        raise WeightsError(f"timm has no weights for {name}; {otherwise}")
    if not config.num_classes:
        raise ModelError(f"timm:{name} has no classes; choose a model that classifies")
    if config.hf_hub_id:
        files = (config.hf_hub_filename,) if config.hf_hub_filename else FILES
        if path := hub.cached(config.hf_hub_id, files):
            # What `custom_load` reads is in the form of those who made the weights.
            return {"file": str(path), "custom_load": False}
    if config.url:
        folder = Path(torch.hub.get_dir(), "checkpoints")
        path = folder / PurePosixPath(urlparse(config.url).path).name
        if path.is_file():
            return {"file": str(path)}
        if not config.hf_hub_id:
            raise WeightsError(
                f"timm:{name} has no weights in {folder}: download {config.url} to there, "
                f"{otherwise}"
            )
    raise hub.missing(f"timm:{name}", config.hf_hub_id, otherwise)


def _example(architecture: str) -> str:
    tags = timm.list_models(f"{architecture}.*", pretrained=True)
    return str(tags[0]) if tags else architecture
