"""The weights that ship with the package: where they live, how they are written and read."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import nn

from attrcheck.errors import AttrcheckError
from attrcheck.training import WEIGHTS

CHECKPOINTS = (25, 50, 75, 100)


class WeightsError(AttrcheckError):
    """Weights that cannot be used; the message names the file and says what to do."""


def weights_path(
    dataset: str, model: str, checkpoint: int | str = 100, folder: Path = WEIGHTS
) -> Path:
    """The file of one checkpoint, named by what lies behind it: of training, the percentage."""
    return folder / f"{dataset}-{model}" / f"{checkpoint}.safetensors"


def save_weights(
    network: nn.Module,
    dataset: str,
    model: str,
    checkpoint: int | str = 100,
    folder: Path = WEIGHTS,
    **facts: Any,
) -> None:
    """Write the weights and, beside them, a JSON file with their hash, their size and `facts`."""
    path = weights_path(dataset, model, checkpoint, folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = save({key: value.contiguous() for key, value in network.state_dict().items()})
    about = {
        "dataset": dataset,
        "model": model,
        "checkpoint": checkpoint,
        **facts,
        "parameters": sum(part.numel() for part in network.parameters()),
        "torch": torch.__version__,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    _replace(path, content)
    _replace(path.with_suffix(".json"), (json.dumps(about, indent=2) + "\n").encode())


def load_weights(
    network: nn.Module,
    dataset: str,
    model: str,
    checkpoint: int | str = 100,
    folder: Path = WEIGHTS,
) -> None:
    """Fill a network with the weights of a checkpoint, if their hash is the one on record."""
    path = weights_path(dataset, model, checkpoint, folder)
    advice = _advice(dataset, model, checkpoint)
    content = _read(path, advice)
    expected = read_about(dataset, model, checkpoint, folder)["sha256"]
    if hashlib.sha256(content).hexdigest() != expected:
        raise WeightsError(f"{path} is damaged: its SHA-256 is not {expected}; {advice}")
    try:
        network.load_state_dict(load(content))
    except (SafetensorError, RuntimeError) as error:
        raise WeightsError(
            f"{path} does not fit the {model} that was built for {dataset}; {advice}\n{error}"
        ) from error


def read_about(
    dataset: str, model: str, checkpoint: int | str = 100, folder: Path = WEIGHTS
) -> dict[str, Any]:
    """What is on record about a checkpoint: recipe, accuracy, hash and so on."""
    path = weights_path(dataset, model, checkpoint, folder).with_suffix(".json")
    advice = _advice(dataset, model, checkpoint)
    try:
        about = json.loads(_read(path, advice))
    except ValueError as error:
        raise WeightsError(f"{path} is not JSON ({error}); {advice}") from error
    if not isinstance(about, dict) or "sha256" not in about:
        raise WeightsError(f"{path} does not state a sha256; {advice}")
    return about


def _advice(dataset: str, model: str, checkpoint: int | str) -> str:
    command = "train"
    if isinstance(checkpoint, str):
        # tuned.<removal>_<grid>
        removal, _, grid = checkpoint.partition(".")[2].rpartition("_")
        command = f"finetune --removal {removal} --grid {grid}"
    return f"reinstall attrcheck or run `attrcheck {command} --datasets {dataset} --models {model}`"


def _read(path: Path, advice: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise WeightsError(f"cannot read {path} ({error.strerror}); {advice}") from error


def _replace(path: Path, content: bytes) -> None:
    """Write under a temporary name and rename, so that no reader sees half a file."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(path)
