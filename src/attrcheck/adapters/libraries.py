"""What adapters share: a class or function by name, its settings, one image at a time."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.errors import suggest
from attrcheck.graph.grids import Layout
from attrcheck.methods.stages import stage_of
from attrcheck.registry import RegistryError

Settings = tuple[tuple[str, Any], ...]
"""Keyword settings as pairs, which a fingerprint can look into."""

CONSTANT = "a library's map is taken as it is"


T = TypeVar("T")


def choose(library: str, kind: str, members: Mapping[str, T], name: str) -> T:
    """The member of a library by its name; an error with close matches where there is none."""
    if name not in members:
        raise RegistryError(f"{library} has no {kind} {name!r}; {suggest(name, members)}")
    return members[name]


def version_of(package: str) -> str:
    """The version of an installed package, so that results of another one are not taken for it."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def parameters(function: Callable[..., Any]) -> dict[str, bool]:
    """The names that a function takes by keyword, and whether each must be given."""
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {
        name: parameter.default is parameter.empty
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.kind in kinds
    }


def check(
    name: str, takes: Mapping[str, bool], provided: Iterable[str], settings: Iterable[str]
) -> None:
    """Raise unless all that must be given is provided or set, and all that is set is taken."""
    known = {*provided, *settings}
    missing = [key for key, needed in takes.items() if needed and key not in known]
    if missing:
        raise RegistryError(
            f"{name} needs more than a name: register it with the settings {', '.join(missing)}"
        )
    unknown = [key for key in settings if key not in takes and key != "stage"]
    if unknown:
        raise RegistryError(
            f"{name} takes no setting {', '.join(unknown)}; it takes {', '.join(takes)}"
        )


def stage_module(model: nn.Module, images: Tensor, stage: str | None) -> tuple[nn.Module, Layout]:
    """The module of a stage, by default the last, and its layout, for libraries that hook it."""
    node, layout = stage_of(model, images, stage)
    if node.op != "call_module":
        raise ValueError(f"the stage {node.name!r} is not a module, so no hook can be put on it")
    return model.get_submodule(str(node.target)), layout


def one_by_one(
    explain: Callable[[Tensor, Tensor], Tensor],
    images: Tensor,
    targets: Tensor,
    seeds: tuple[int, ...],
) -> Tensor:
    """Maps of images that are explained one at a time, the global generators seeded for each.

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
