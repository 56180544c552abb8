"""Where modules come from: a project's own files, or an installed library and its version."""

from __future__ import annotations

import functools
import importlib.util
import sys
import sysconfig
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path


def place(name: str) -> tuple[str, str]:
    """The package and the file of a module; empty where there is none."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__package__", "") or "", getattr(module, "__file__", "") or ""
    return _find(name)


@functools.cache
def _find(name: str) -> tuple[str, str]:
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # whatever a package raises that cannot be imported here
        return "", ""
    return (spec.parent or "", spec.origin or "") if spec else ("", "")


@functools.cache
def is_installed(file: str) -> bool:
    """Whether a file belongs to a library, of this environment or of one below it, or to Python."""
    path = Path(file)
    below = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    frozen = file in ("", "built-in", "frozen")
    return below or frozen or any(path.is_relative_to(root) for root in _installed_roots())


@functools.cache
def _installed_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]})


@functools.cache
def _distributions() -> Mapping[str, list[str]]:
    """Which distributions a package comes from; slow to find out."""
    return metadata.packages_distributions()


@functools.cache
def version(library: str) -> str:
    """A library with its version; those of Python itself are taken to be the same everywhere."""
    if library in sys.stdlib_module_names:
        return library
    for name in _namesake(library) or _distributions().get(library, []):
        with suppress(metadata.PackageNotFoundError):
            return f"{name} {metadata.version(name)}"
    return library


def _namesake(library: str) -> list[str]:
    """The distribution of the same name, if the package comes from it, as most do."""
    try:
        named = metadata.distribution(library)
    except (metadata.PackageNotFoundError, ValueError):
        return []
    return [named.name] if Path(str(named.locate_file(library))).is_dir() else []
