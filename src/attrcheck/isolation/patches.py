"""Functions and methods of torch, numpy and attrcheck that were exchanged, and torch's own hooks.

Only what can be called is watched, by identity, and only names that were there before: a library
that is imported late may add some.
"""

from __future__ import annotations

import builtins
import functools
import math
import os
import random
import sys
import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from operator import is_not
from typing import Any

import numpy as np
import torch
from torch.nn.modules import module as modules
from torch.optim import optimizer

MODULES: tuple[types.ModuleType, ...] = (
    *(builtins, math, random, np, np.fft, np.linalg, np.random),
    *(torch, torch.autograd, torch.fft, torch.linalg, torch.random, torch.special),
    *(torch.nn, torch.nn.functional, torch.nn.init, torch.optim, torch.autograd.functional),
)
CLASSES: tuple[type, ...] = (torch.Tensor, torch.autograd.Function, random.Random)
OURS = "attrcheck."
HOMES = ("torch.nn.modules.", "torch.nn.parameter", "torch.optim.", OURS)
"""Modules whose classes are watched; those of attrcheck are watched themselves too."""
_ABSENT = object()


@dataclass(frozen=True)
class Patches:
    """What modules and classes held, and which hooks there were, before somebody came."""

    held: list[tuple[Any, dict[str, Any]]]
    hooks: list[tuple[dict[Any, Any], dict[Any, Any]]]

    @classmethod
    def now(cls) -> Patches:
        """Note what is there."""
        # New modules may have come since; the list of them is long, and rarely changes.
        owners = _owners(len(sys.modules))
        return cls(
            [(owner, dict(vars(owner))) for owner in owners],
            [(registry, dict(registry)) for registry in _hooks()],
        )

    def undo(self) -> list[str]:
        """Put back what was exchanged; what it was, in words."""
        words = []
        for owner, before in self.held:
            for name in _exchanged(owner, before):
                words.append(f"exchanged {_label(owner)}.{name}")
                _restore(owner, name, before.get(name, _ABSENT))
        for registry, entries in self.hooks:
            if registry.keys() != entries.keys():
                words.append("left hooks on all modules, or removed some")
                registry.clear()
                registry.update(entries)
        return words


def _exchanged(owner: Any, before: Mapping[str, Any]) -> list[str]:
    """Names that mean something else than before."""
    held = vars(owner)
    names = []
    if any(map(is_not, before.values(), map(held.get, before))):
        names += [
            name
            for name, value in before.items()
            if _is_code(value) and held.get(name) is not value and not _by_itself(owner, name)
        ]
    if isinstance(owner, type) and len(held) != len(before):
        # Tensor.argmax, for one, is inherited: whoever exchanges it adds it.
        inherited = set().union(*(vars(base) for base in owner.__mro__[1:]))
        added = (held.keys() - before.keys()) & inherited
        # Copying notes __slotnames__ in a class: what Python keeps there itself is no code.
        names += sorted(n for n in added if callable(held[n]) or not n.startswith("__"))
    return names


def _by_itself(owner: Any, name: str) -> bool:
    """Whether a library wrapped a function of its own, as torch does when its compiler loads."""
    home = sys.modules[_label(owner).partition(".")[0]]
    new = vars(owner).get(name)
    file = getattr(getattr(new, "__code__", None), "co_filename", "")
    folders = [f"{folder}{os.sep}" for folder in getattr(home, "__path__", ())]
    return getattr(new, "__name__", "") == name and file.startswith(tuple(folders))


def _is_code(value: Any) -> bool:
    descriptors = (property, classmethod, staticmethod, functools.cached_property)
    return callable(value) or isinstance(value, descriptors)


def _restore(owner: Any, name: str, value: Any) -> None:
    with suppress(AttributeError, TypeError):  # what does not let itself be set was not set
        if value is _ABSENT:
            type.__delattr__(owner, name)
        elif isinstance(owner, type):
            type.__setattr__(owner, name, value)
        else:
            vars(owner)[name] = value


def _label(owner: Any) -> str:
    if isinstance(owner, type):
        return f"{owner.__module__}.{owner.__qualname__}"
    return str(owner.__name__)


@functools.lru_cache(maxsize=1)
def _owners(count: int) -> list[Any]:
    """The modules and classes to watch, when so many modules are loaded."""
    homes = [home for name, home in sorted(sys.modules.items()) if name.startswith(HOMES)]
    ours = [home for home in homes if home.__name__.startswith(OURS)]
    classes = [
        value
        for home in homes
        for value in vars(home).values()
        if isinstance(value, type) and value.__module__ == home.__name__
    ]
    return [*dict.fromkeys([*MODULES, *ours, *CLASSES, *classes])]


def _hooks() -> list[dict[Any, Any]]:
    """All of torch's registries of hooks on every module, or every optimiser."""
    return [
        value
        for home in (modules, optimizer)
        for name, value in vars(home).items()
        if name.startswith("_global_") and isinstance(value, dict)
    ]
