"""What adapters of other libraries share: a class by name, its settings, one image at a time."""

from __future__ import annotations

import difflib
import inspect
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.methods.stages import stage_node
from attrcheck.registry import RegistryError

Settings = tuple[tuple[str, Any], ...]
"""Keyword settings as pairs, which a fingerprint can look into."""

CONSTANT = "a library's map is taken as it is"


def choose(library: str, classes: Mapping[str, type], name: str) -> type:
    """The class of a library; an error with close matches where there is none."""
    if name not in classes:
        close = difflib.get_close_matches(name, classes, n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else f"there are: {_list(classes)}"
        raise RegistryError(f"{library} has no attribution class {name!r}; {hint}")
    return classes[name]


def parameters(function: Callable[..., Any]) -> dict[str, bool]:
    """The names that a function takes by keyword, and whether each must be given."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    found = inspect.signature(function).parameters.values()
    return {each.name: each.default is each.empty for each in found if each.kind in kinds}


def check(
    name: str, takes: Mapping[str, bool], provided: Iterable[str], settings: Iterable[str]
) -> None:
    """Raise unless all that must be given is provided or set, and all that is set is taken."""
    known = {*provided, *settings}
    missing = [each for each, needed in takes.items() if needed and each not in known]
    if missing:
        raise RegistryError(
            f"{name} needs more than a name: register it with the settings {_list(missing)}"
        )
    unknown = [each for each in settings if each not in takes and each != "stage"]
    if unknown:
        raise RegistryError(f"{name} takes no setting {_list(unknown)}; it takes {_list(takes)}")


def stage_module(model: nn.Module, images: Tensor, stage: str | None) -> nn.Module:
    """The module behind a stage, by default the last, for libraries that hook modules."""
    node = stage_node(model, images, stage)
    if node.op != "call_module":
        raise ValueError(f"the stage {node.name!r} is no module that hooks could be put on")
    return model.get_submodule(str(node.target))


def one_by_one(
    explain: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
) -> Tensor:
    """Maps of images that never meet, each with the global generators seeded for it alone.

    Libraries draw from the global generators; the engine puts these back afterwards.
    """
    maps = []
    for place, seed in enumerate(seeds):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)
        random.seed(seed)
        one = slice(place, place + 1)
        maps.append(explain(images[one].detach().clone(), targets[one]).detach())
    return torch.cat(maps)


def _list(names: Iterable[str]) -> str:
    return ", ".join(names)
