"""Weights on disk: those that ship with the package, and those of public networks in any file."""

from __future__ import annotations

import errno
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, load_file, save
from torch import Tensor, nn

from attrcheck.errors import AttrcheckError
from attrcheck.store.files import write_whole
from attrcheck.training import WEIGHTS

CHECKPOINTS = (25, 50, 75, 100)
"""Percentages of training after which weights are kept."""
SHUFFLED = "shuffled"
"""In place of a percentage: trained on shuffled labels."""
WRAPPERS = ("state_dict", "model", "net")
"""Under which public files keep their state dict, if it does not lie at the top."""
SHA256 = re.compile("[0-9a-f]{64}")
MISSING = object()
NUMBER = (int, float)
TUNED: dict[str, type | tuple[type, ...]] = {
    "base": str,
    "removal": str,
    "grid": int,
    "accuracy before": NUMBER,
    "accuracy after": NUMBER,
    "worst_cell before": NUMBER,
    "worst_cell after": NUMBER,
    "similarity label_probability": NUMBER,
    "similarity total_variation": NUMBER,
    "similarity gradcam": (*NUMBER, type(None)),
}
"""What must be on record about a fine-tuning; a blank leads into a fact that has parts."""
UNUSED = "num_batches_tracked"
"""Counters of batch norms, which do nothing in eval mode."""


class WeightsError(AttrcheckError):
    """Weights that cannot be used; the message names the file and says what to do."""


def weights_path(
    dataset: str, model: str, checkpoint: int | str = 100, folder: Path = WEIGHTS
) -> Path:
    """The file of one checkpoint: a percentage of training, SHUFFLED or the key of a tuning."""
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
    facts = {"dataset": dataset, "model": model, "checkpoint": checkpoint, **facts}
    write_weights(network, path, facts)


def write_weights(
    network: nn.Module, path: Path, facts: dict[str, Any], metadata: dict[str, str] | None = None
) -> None:
    """Write weights to a file, with metadata in it, and beside it a JSON file of facts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = save(
        {key: value.contiguous() for key, value in network.state_dict().items()}, metadata
    )
    about = {
        **facts,
        "parameters": sum(part.numel() for part in network.parameters()),
        "torch": torch.__version__,
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    write_whole(path, content)
    write_whole(path.with_suffix(".json"), (json.dumps(about, indent=2) + "\n").encode())


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
    except (ValueError, RecursionError) as error:
        raise WeightsError(f"{path} is not JSON ({error}); {advice}") from error
    if not isinstance(about, dict) or not SHA256.fullmatch(str(about.get("sha256"))):
        raise WeightsError(f"{path} does not state a sha256; {advice}")
    for fact, kinds in TUNED.items() if _is_tuned(checkpoint) else ():
        if not isinstance(_look_up(about, fact), kinds):
            raise WeightsError(f"{path} does not state {fact} as it should; {advice}")
    return about


def read_state(path: Path) -> dict[str, Tensor]:
    """The state dict in a .safetensors file, or in one of torch.save, read without running code."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise WeightsError(f"cannot read weights from {path}: {error}") from error
    for wrapper in WRAPPERS:
        state = state.get(wrapper, state)
    return {key.removeprefix("module."): value for key, value in state.items()}


def fill(network: nn.Module, state: dict[str, Tensor], path: Path) -> nn.Module:
    """The network with this state, in eval mode; every weight must fit and none be left over."""
    known = network.state_dict()
    # Older files lack the counters.
    counters = {key: value for key, value in known.items() if key.endswith(UNUSED)}
    wanted = {key: value for key, value in state.items() if key in known or UNUSED not in key}
    try:
        network.load_state_dict({**counters, **wanted})
    except RuntimeError as error:
        raise WeightsError(f"{path} does not fit the network: {error}") from error
    return network.eval()


def _look_up(about: dict[str, Any], fact: str) -> Any:
    """A fact, or a part of one; `MISSING` where there is none."""
    value: Any = about
    for part in fact.split():
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    return value


def _is_tuned(checkpoint: int | str) -> bool:
    return isinstance(checkpoint, str) and checkpoint != SHUFFLED


def _advice(dataset: str, model: str, checkpoint: int | str) -> str:
    command = "train --shuffled" if checkpoint == SHUFFLED else "train"
    if _is_tuned(checkpoint):
        # tuned.<removal>_<grid>
        removal, _, grid = str(checkpoint).partition(".")[2].rpartition("_")
        command = f"finetune --removal {removal} --grid {grid}"
    return f"reinstall attrcheck or run `attrcheck {command} --datasets {dataset} --models {model}`"


def _read(path: Path, advice: str) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "not a file")  # a pipe would never end
        return path.read_bytes()
    except OSError as error:
        raise WeightsError(f"cannot read {path} ({error.strerror}); {advice}") from error
