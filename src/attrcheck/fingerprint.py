"""Fingerprints: a short hash of values, tensors or code, the same on every machine."""

from __future__ import annotations

import functools
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any


def digest(*parts: Any) -> str:
    """Sixteen hex digits of all parts; tensors and arrays count with dtype, shape and bytes."""
    hasher = hashlib.sha256()
    for part in parts:
        if hasattr(part, "detach"):
            part = part.detach().cpu().numpy()
        if hasattr(part, "tobytes"):
            hasher.update(f"{part.dtype}{part.shape}".encode())
            hasher.update(part.tobytes())
        else:
            hasher.update(repr(part).encode())
        hasher.update(b"\0")
    return hasher.hexdigest()[:16]


def of_code(function: Callable[..., Any]) -> str:
    """Hash of the file that defines a function and of the project files that it builds on.

    Installed libraries are left out: they are told apart by version, not by source.
    """
    while isinstance(function, functools.partial):
        function = function.func
    return _of_module(getattr(function, "__module__", None) or type(function).__module__)


@functools.cache
def _of_module(name: str) -> str:
    found: dict[str, Path] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        module = sys.modules.get(current)
        if module is None or current in found or not (path := _source(module, name)):
            continue
        found[current] = path
        waiting.extend(_used_by(module))
    return digest(*((key, found[key].read_bytes()) for key in sorted(found)))


def _used_by(module: ModuleType) -> Iterator[str]:
    """Names of the modules that a module's own globals come from, a package's children aside."""
    for value in list(vars(module).values()):
        if isinstance(value, ModuleType):
            if not value.__name__.startswith(f"{module.__name__}."):
                yield value.__name__
        elif isinstance(home := getattr(value, "__module__", None), str):
            yield home


def _source(module: ModuleType, start: str) -> Path | None:
    """The file of a module that belongs to the project of `start`, else None."""
    file = getattr(module, "__file__", None)
    if file is None or not file.endswith(".py"):
        return None
    same_package = module.__name__.partition(".")[0] == start.partition(".")[0]
    installed = any(Path(file).is_relative_to(root) for root in _installed_roots())
    return Path(file) if same_package or not installed else None


@functools.cache
def _installed_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]})
