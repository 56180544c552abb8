"""Fingerprints: a short hash of values, tensors or code, the same on every machine."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import re
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

PLAIN = (bool, int, float, complex, str, bytes, type(None))
_KNOWN: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
DEEPEST = 12
"""So many things inside one another are looked into."""


def digest(*parts: Any) -> str:
    """Sixteen hex digits of all parts; tensors and arrays count with dtype, shape and bytes."""
    hasher = hashlib.sha256()
    for part in parts:
        _feed(hasher, part)
    return hasher.hexdigest()[:16]


def _feed(hasher: Any, part: Any) -> None:
    if isinstance(part, dict):
        part = list(part.items())
    if isinstance(part, tuple | list):
        # Item by item: an array inside would be printed rounded, and cut short.
        hasher.update(f"{type(part).__name__}{len(part)}".encode())
        for item in part:
            _feed(hasher, item)
    elif hasattr(part, "detach"):
        hasher.update(str(part.dtype).removeprefix("torch.").encode())
        # numpy has no bfloat16.
        part = part.detach().cpu()
        part = (part.float() if str(part.dtype) == "torch.bfloat16" else part).numpy()
        hasher.update(f"{part.shape}".encode())
        hasher.update(part.tobytes())
    elif hasattr(part, "tobytes"):
        hasher.update(f"{part.dtype}{part.shape}".encode())
        hasher.update(part.tobytes())
    else:
        hasher.update(repr(part).encode())
    hasher.update(b"\0")


def of_code(function: Callable[..., Any]) -> str:
    """Hash of the file that defines a function and of the project files that it imports.

    Arguments of a partial, what a closure holds and the attributes of a callable object count too,
    as they are when they are first looked at: some keep notes of what they did. Installed libraries
    are left out: they are told apart by version, not by source.
    """
    owner = getattr(function, "__self__", function)
    name = getattr(function, "__qualname__", "")
    try:
        known = _KNOWN.setdefault(owner, {})
    except TypeError:  # nothing that can be remembered
        return _of_code(function, ())
    if name not in known:
        known[name] = _of_code(function, ())
    return known[name]


def _of_code(function: Any, seen: tuple[int, ...]) -> str:
    if isinstance(function, functools.partial):
        given = [function.args, sorted(function.keywords.items())]
        return digest(_of_code(function.func, seen), _settings(given, seen))
    settings = _settings(_held(function), (*seen, id(function)))
    if not (code := _name(function)) or not seen:  # what is registered counts, installed or not
        home = _globals(function)
        code = _of_file(home["__name__"], home.get("__package__") or "", home.get("__file__") or "")
    return digest(code, settings) if settings else code


def _held(function: Any) -> list[Any]:
    """What a function closes over, and the attributes of the object that it belongs to or is."""
    held = []
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # no value yet
            held.append(cell.cell_contents)
    plain = isinstance(function, type | types.FunctionType)
    owner = None if plain else getattr(function, "__self__", function)
    if owner is not None and not isinstance(owner, type | types.ModuleType):
        held.append(getattr(owner, "__dict__", {}))
    return held


@functools.cache
def of_package() -> str:
    """Hash of all of attrcheck: its code, and what its weights are said to be."""
    root = Path(__file__).parent
    files = (*root.rglob("*.py"), *root.glob("weights/**/*.json"))
    return digest(*sorted((str(path.relative_to(root)), path.read_bytes()) for path in files))


def _settings(value: Any, seen: tuple[int, ...]) -> Any:
    """A value as something with a stable hash; `seen` are those that it is part of."""
    if isinstance(value, PLAIN) or hasattr(value, "tobytes") or hasattr(value, "detach"):
        return value
    if id(value) in seen or len(seen) > DEEPEST:
        return type(value).__name__
    seen = (*seen, id(value))
    if isinstance(value, Mapping):
        items = {str(_settings(key, seen)): _settings(item, seen) for key, item in value.items()}
        return [(key, items[key]) for key in sorted(items)]
    if isinstance(value, tuple | list):
        return [_settings(item, seen) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(_settings(item, seen)) for item in value)
    if isinstance(value, types.ModuleType):
        return value.__name__
    if callable(value):
        line = getattr(getattr(value, "__code__", None), "co_firstlineno", 0)
        return [getattr(value, "__qualname__", ""), line, _of_code(value, seen)]
    attributes = getattr(value, "__dict__", None)
    if isinstance(value, Enum) or not attributes:
        return re.sub(" at 0x[0-9a-f]+", "", repr(value))
    return [_of_code(type(value), seen), _settings(attributes, seen)]


def _name(kind: Any) -> str:
    """What tells a function or class of an installed library from another; none for one's own."""
    if not hasattr(kind, "__qualname__"):
        kind = type(kind)
    library = str(kind.__module__).partition(".")[0]
    if library == __package__ or not _is_installed(_place(library)[1]):
        return ""
    name = f"{kind.__module__}.{kind.__qualname__}"
    with suppress(metadata.PackageNotFoundError):
        name += f" of {metadata.version(library)}"
    return name


def _globals(function: Any) -> dict[str, Any]:
    """The globals of the module that defines a function, a class or a callable object.

    Taken from the code itself where that is possible: two conftest files share one module name.
    """
    if hasattr(function, "__globals__"):
        return dict(function.__globals__)
    owner = function if isinstance(function, type) else type(function)
    for value in vars(owner).values():
        found = getattr(value, "__globals__", {})
        if found.get("__name__") == owner.__module__:
            return dict(found)
    return dict(vars(sys.modules[owner.__module__]))


@functools.cache
def _of_file(name: str, package: str, file: str) -> str:
    found: dict[str, bytes] = {}
    waiting = [(name, package, file)]
    while waiting:
        current, package, file = waiting.pop()
        if current in found or not _belongs(current, file, name):
            continue
        found[current] = Path(file).read_bytes()
        for imported in _imports(found[current], package):
            library, _, inside = imported.partition(".")
            # To look for a part of a package is to import the package.
            if inside and library != name.partition(".")[0] and _is_installed(_place(library)[1]):
                continue
            waiting.append((imported, *_place(imported)))
    return digest(*sorted(found.items()))


def _imports(source: bytes, package: str) -> Iterator[str]:
    """Names of modules that a file imports, inside functions too; some are no modules."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                yield from (".".join(parts[: end + 1]) for end in range(len(parts)))
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                if not package:
                    continue
                base = importlib.util.resolve_name("." * node.level + base, package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _place(name: str) -> tuple[str, str]:
    """The package and the file of a module; empty where there is none."""
    module = sys.modules.get(name)
    if module is not None:
        return getattr(module, "__package__", "") or "", getattr(module, "__file__", "") or ""
    try:
        spec = importlib.util.find_spec(name)
    except Exception:  # whatever a package raises that cannot be imported here
        return "", ""
    return (spec.parent or "", spec.origin or "") if spec else ("", "")


def _belongs(name: str, file: str, start: str) -> bool:
    """Whether a file is part of the project of `start`."""
    if not file.endswith(".py") or not Path(file).is_file():
        return False
    if name.partition(".")[0] == start.partition(".")[0]:
        return True
    return not _is_installed(file)


@functools.cache
def _is_installed(file: str) -> bool:
    """Whether a file belongs to a library, of this environment or of one below it, or to Python."""
    path = Path(file)
    below = not {"site-packages", "dist-packages"}.isdisjoint(path.parts)
    frozen = file in ("built-in", "frozen")
    return below or frozen or any(path.is_relative_to(root) for root in _installed_roots())


@functools.cache
def _installed_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    return tuple({paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]})
