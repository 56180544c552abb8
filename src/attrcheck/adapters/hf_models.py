"""Image classifiers of Hugging Face: `hf:google/vit-base-patch16-224`, or `hf:FOLDER`.

They are taken from the hub's cache, and never downloaded here. Behind an @ stands a revision, a
file or folder with other weights, or `random`.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from attrcheck.adapters import checkpoints, hub, processors
from attrcheck.adapters.checkpoints import Misfits, WeightsError
from attrcheck.adapters.vision import transformers
from attrcheck.contracts import Dataset, Model, Pictures, Preprocessing
from attrcheck.errors import ModelError, text_of
from attrcheck.graph.outputs import Logits
from attrcheck.models import ModelSpec
from attrcheck.models.classes import known_synsets

LOCAL: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
EAGER = {"attn_implementation": "eager"}
"""So that the softmax of an attention can be seen."""
CONFIG = "config.json"


def resolve(rest: str) -> ModelSpec:
    """The model `hf:ORG/NAME` or `hf:FOLDER`, `@REVISION`, `@FILE`, `@FOLDER` or `@random`."""
    name, weights = checkpoints.split(rest)
    depends = ["package:transformers"]
    build = partial(_from_folder, name, weights or None)
    if weights == "random":
        build = partial(_random, name)
    elif checkpoints.is_path(weights):
        path = Path(weights).expanduser().absolute()
        if path.is_dir():
            build = partial(_from_folder, str(path), None)
        else:
            depends.append(f"file:{path}")
            build = partial(_from_file, name, path)
    return ModelSpec(f"hf:{rest}", build, depends=depends)


def _from_folder(name: str, revision: str | None, data: Dataset | Pictures) -> Model:
    folder = _folder(name, revision)
    _classifies(name, _config(folder))
    auto = transformers.AutoModelForImageClassification
    try:
        network, facts = auto.from_pretrained(folder, output_loading_info=True, **LOCAL, **EAGER)
    except OSError as error:
        raise _missing(name, folder, revision) from error
    except Exception as error:
        raise WeightsError(f"hf:{name} cannot be read from {folder}: {text_of(error)}") from error
    if absent := sorted(facts["missing_keys"]):
        raise WeightsError(
            f"the weights of hf:{name} lack {', '.join(absent[:4])}: was it fine-tuned to "
            "classify? Choose a model that was, or give a file (hf:NAME@FILE)"
        )
    return _model(name, network, folder)


def _from_file(name: str, path: Path, data: Dataset | Pictures) -> Model:
    folder = _folder(name)
    network, _ = checkpoints.load(path, partial(_network, name, _config(folder)), _fit)
    model = _model(name, network, folder)
    named = checkpoints.class_names(path)
    return Model(model.network, model.preprocessing, named or model.class_names)


def _random(name: str, data: Dataset | Pictures) -> Model:
    folder = _folder(name)
    config = _config(folder)
    network = checkpoints.seeded(lambda: _network(name, config, data.classes))
    return _model(name, network, folder)


def _network(
    name: str, config: Any, classes: int | None, weights: Collection[str] = ()
) -> nn.Module:
    """The network without its weights."""
    _classifies(name, config)
    if classes is not None and classes != config.num_labels:
        config.num_labels = classes
    auto = transformers.AutoModelForImageClassification
    network: nn.Module = auto.from_config(config, **EAGER)
    return network


def _fit(network: Any, state: dict[str, Tensor]) -> tuple[nn.Module, Misfits]:
    """As transformers does it: names of weights have changed from version to version."""
    fitted, facts = type(network).from_pretrained(
        None,
        config=network.config,
        state_dict=state,
        output_loading_info=True,
        ignore_mismatched_sizes=True,
        **EAGER,
    )
    other = [f"{key} {list(have)} for {list(want)}" for key, have, want in facts["mismatched_keys"]]
    missing, unexpected = facts["missing_keys"], facts["unexpected_keys"]
    return fitted, Misfits(sorted(missing), sorted(unexpected), sorted(other))


def _model(name: str, network: Any, folder: Path) -> Model:
    """With the preprocessing that stands beside the config, in full precision."""
    labels = network.config.id2label
    names = tuple(str(labels[index]) for index in sorted(labels))
    unnamed = all(label == f"LABEL_{index}" for index, label in enumerate(names))
    return Model(
        Logits(network.float(), "logits", by_key=False).eval(),
        _preprocessing(name, folder),
        () if unnamed else known_synsets(names) or names,
    )


def _preprocessing(name: str, folder: Path) -> Preprocessing:
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(folder, **LOCAL)
    except Exception as error:
        raise ModelError(
            f"hf:{name}: {folder / 'preprocessor_config.json'} does not tell what the network "
            f"wants done to a picture: {text_of(error)}"
        ) from error
    return processors.preprocessing(f"hf:{name}", processor)


def _folder(name: str, revision: str | None = None) -> Path:
    """Where the config is: a folder of the user's, or one in the cache."""
    folder = Path(name).expanduser()
    if (folder / CONFIG).is_file():
        return folder.absolute()
    if name.startswith((".", "/", "~")):
        raise WeightsError(f"hf:{name}: there is no file {folder / CONFIG}")
    path = hub.cached(name, (CONFIG,), revision)
    if path is None:
        raise _missing(name, None, revision)
    return path.parent


def _missing(name: str, folder: Path | None, revision: str | None) -> WeightsError:
    own = folder is not None and Path(name).expanduser().is_dir()
    if own:
        return WeightsError(
            f"hf:{name}: there are no weights in {folder}, such as model.safetensors; give a file "
            f"(hf:{name}@FILE), or try it with @random"
        )
    random = "" if folder is None else ", or try it with @random"
    otherwise = f"give a folder that save_pretrained() wrote (hf:FOLDER){random}"
    return hub.missing(f"hf:{name}", name, otherwise, revision)


def _config(folder: Path) -> Any:
    try:
        return transformers.AutoConfig.from_pretrained(folder, **LOCAL)
    except Exception as error:
        raise ModelError(f"{folder / CONFIG} cannot be read: {text_of(error)}") from error


def _classifies(name: str, config: Any) -> None:
    """Raise unless transformers has an image classifier of this kind."""
    if config.model_type == "timm_wrapper":
        architecture = name.rpartition("/")[2]
        raise ModelError(f"hf:{name} is a model of timm; write timm:{architecture}")
    if type(config) not in transformers.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING:
        raise ModelError(
            f"hf:{name} is of the kind {config.model_type!r}, which classifies no images"
        )
