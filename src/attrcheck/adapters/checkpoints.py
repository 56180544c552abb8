"""Weights from a file, or from a seed, for the architectures of other libraries."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from attrcheck.errors import AttrcheckError, text_of

PICKLED = (".pth", ".pt", ".bin", ".ckpt")
SUFFIXES = (".safetensors", *PICKLED)
WRAPPERS = ("state_dict", "model_state_dict", "model", "network", "net", "weights")
"""Where training scripts put the weights in what they save."""
PREFIXES = (
    *("", "module.", "model.", "network.", "net.", "_orig_mod."),
    *("module.model.", "model.module.", "model._orig_mod.", "_orig_mod.module."),
)
"""What wrappers put before the names of weights."""
SHOWN = 4
SEED = 0

Build = Callable[[int | None, Collection[str]], nn.Module]
"""Makes a network for weights of these names, with so many outputs or those it has by default."""


@dataclass(frozen=True)
class Misfits:
    """Names of weights that are not in a file, that are in it alone, or that have other shapes."""

    missing: Collection[str]
    unexpected: Collection[str]
    of_other_shapes: Collection[str]


Fit = Callable[[nn.Module, dict[str, Tensor]], tuple[nn.Module, Misfits]]
"""Puts weights into a network, or into one like it."""


class WeightsError(AttrcheckError):
    """Weights that are missing, cannot be read, or do not fit the network."""


def split(rest: str) -> tuple[str, str]:
    """The name of an architecture, and what stands behind the @ for its weights."""
    name, _, weights = rest.partition("@")
    return name, weights


def is_path(weights: str) -> bool:
    """Whether what stands behind the @ is a file or folder, not a name."""
    return weights.endswith(SUFFIXES) or os.sep in weights or weights in (".", "..")


def seeded(build: Callable[[], nn.Module]) -> nn.Module:
    """A network with random weights, the same in every run; generators stay as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        return build()


def fit(network: nn.Module, state: dict[str, Tensor]) -> tuple[nn.Module, Misfits]:
    """The network with these weights, if they fit."""
    wanted = network.state_dict()
    misfits = Misfits(
        # Older versions of torch did not count batches.
        [n for n in wanted if n not in state and not n.endswith("num_batches_tracked")],
        [name for name in state if name not in wanted],
        [
            f"{name} {list(state[name].shape)} for {list(weight.shape)}"
            for name, weight in wanted.items()
            if name in state and state[name].shape != weight.shape
        ],
    )
    if not misfits.of_other_shapes:
        network.load_state_dict(state, strict=False)
    return network, misfits


def load(path: Path, build: Build, fit: Fit = fit) -> tuple[nn.Module, int | None]:
    """The network with the weights of a file, and how many outputs it has; None: as by default."""
    state = read(path)
    network = build(None, state)
    state = _stripped(state, network.state_dict())
    classes = _classes(state, network.state_dict())
    if classes is not None:
        network = build(classes, state)
    network, misfits = fit(network, state)
    troubles = [
        f"{len(names)} {what.replace('_', ' ')}: {_some(names)}"
        for what, names in vars(misfits).items()
        if names
    ]
    if troubles:
        raise WeightsError(
            f"the weights in {path} do not fit {type(network).__name__}: {'; '.join(troubles)}; "
            "are they those of another architecture?"
        )
    return network, classes


def read(path: Path) -> dict[str, Tensor]:
    """The weights in a file; of a pickle nothing but tensors is read."""
    if not path.is_file():
        raise WeightsError(f"there is no checkpoint {path}")
    try:
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if "Unsupported global" not in str(error):
            raise WeightsError(
                f"{path} is not a checkpoint: is it a web page, a Git LFS pointer or a part of a "
                "file in its place? Download it again"
            ) from error
        raise WeightsError(
            f"{path} holds more than tensors and is not read, as to unpickle it may run code; save "
            "its state_dict() alone, best as .safetensors"
        ) from error
    except (SafetensorError, OSError, RuntimeError, EOFError, ValueError) as error:
        raise WeightsError(f"{path} cannot be read as a checkpoint: {text_of(error)}") from error
    return _state(content, path)


def class_names(path: Path) -> tuple[str, ...]:
    """The names that a safetensors file may keep in its metadata: JSON, under `class_names`."""
    if path.suffix != ".safetensors":
        return ()
    with safe_open(path, "pt") as file:
        text = (file.metadata() or {}).get("class_names", "[]")
    return tuple(json.loads(text))


def _state(content: Any, path: Path) -> dict[str, Tensor]:
    """The weights in what a training script saved."""
    wrapped = [content[name] for name in WRAPPERS if isinstance(content, dict) and name in content]
    for candidate in (content, *wrapped):
        if isinstance(candidate, Mapping) and candidate and _all_tensors(candidate.values()):
            return dict(candidate)
    there = f"a dict of {_some(content)}" if isinstance(content, dict) else type(content).__name__
    raise WeightsError(
        f"{path} holds no weights but {there}; save the network's state_dict(), alone or under "
        f"{', '.join(WRAPPERS[:3])}"
    )


def _all_tensors(values: Iterable[Any]) -> bool:
    return all(isinstance(value, Tensor) for value in values)


def _stripped(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights by the names that the network has, without what a wrapper put before them."""
    prefix = max(PREFIXES, key=lambda prefix: sum(prefix + name in state for name in wanted))
    return {name.removeprefix(prefix): weight for name, weight in state.items()}


def _classes(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> int | None:
    """How many outputs the weights are for, if only that tells them from the network's own."""
    sizes = {
        (state[name].shape[0], weight.shape[0])
        for name, weight in wanted.items()
        if name in state
        and state[name].shape != weight.shape
        and state[name].ndim == weight.ndim > 0
        and state[name].shape[1:] == weight.shape[1:]
    }
    return next(iter(sizes))[0] if len(sizes) == 1 else None


def _some(names: Iterable[Any]) -> str:
    known = list(names)
    return ", ".join(map(str, known[:SHOWN])) + (", ..." if len(known) > SHOWN else "")
