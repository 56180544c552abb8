"""Fingerprints: a short hash of values, tensors or code, the same on every machine."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from attrcheck.store.sources import (
    OURS,
    Closure,
    Source,
    is_installed,
    place,
    read_source,
    source_of,
    version,
)

PLAIN = (bool, int, float, complex, str, bytes, type(None))
_KNOWN: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
ROOT = Path(__file__).parent.parent


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


def of_code(thing: Callable[..., Any]) -> str:
    """Hash of a function, class or callable object: of its code and of all that it uses.

    See `store.sources` for what counts. The arguments of a partial, what a closure holds, defaults
    and the attributes of an object count by value, as they are when they are first looked at: some
    keep notes of what they did.
    """
    owner = getattr(thing, "__self__", thing)
    name = getattr(thing, "__qualname__", "")
    try:
        known = _KNOWN.setdefault(owner, {})
    except TypeError:  # nothing that can be remembered
        return digest(_code(thing, ()))
    if name not in known:
        known[name] = digest(_code(thing, ()))
    return known[name]


def of_value(value: Any) -> str:
    """Hash of any value: data by their bytes, objects by attributes, code by `of_code`."""
    return digest(_value(value, ()))


def closure_of(thing: Callable[..., Any]) -> Closure:
    """The definitions that the code of a function or class reaches, and the libraries."""
    closure = Closure(_followed(thing))
    for source, node in _nodes(thing):
        closure.add(source, node)
    return closure


def of_module(name: str) -> str:
    """Hash of all code of a module, imported or not."""
    source = source_of(name)
    if source is None:
        raise ImportError(f"there is no source of {name}", name=name)
    return digest(ast.dump(source.tree))


@functools.cache
def of_tree(names: tuple[str, ...]) -> str:
    """Hash of all code of these rooms and modules of attrcheck."""
    paths = [path for name in names for path in (ROOT / f"{name}.py", *(ROOT / name).rglob("*.py"))]
    trees = (read_source(str(path), "") for path in sorted(paths) if path.exists())
    return digest(*(ast.dump(source.tree) for source in trees if source))


def _code(thing: Any, seen: tuple[int, ...]) -> Any:
    """Something with a stable hash for what can be called; `seen` are those that hold it."""
    if isinstance(thing, functools.partial):
        return ["partial", _code(thing.func, seen), _value([thing.args, thing.keywords], seen)]
    inside = (*seen, id(thing))
    if (name := _library(thing)) and seen:  # what is registered counts, installed or not
        return name
    if isinstance(thing, types.MethodType):
        return ["method", _code(thing.__func__, inside), _value(thing.__self__, inside)]
    held = _value(_held(thing), inside)
    if isinstance(thing, types.FunctionType | type):
        closure = closure_of(thing)
        return ["code", closure.parts() or _compiled(thing), held]
    return ["object", _code(type(thing), inside), held]


def _held(thing: Any) -> list[Any]:
    """What a function, class or object holds that its source does not tell."""
    if isinstance(thing, type):
        # Methods of a class that a function made may hold what that function knew.
        return [_cells(method) for method in vars(thing).values() if hasattr(method, "__closure__")]
    if isinstance(thing, types.FunctionType):
        attributes = {k: v for k, v in vars(thing).items() if k != "__wrapped__"}
        wrapped = getattr(thing, "__wrapped__", None)
        return [_cells(thing), thing.__defaults__, thing.__kwdefaults__, attributes, wrapped]
    return [getattr(thing, "__dict__", {}), _slots(thing)]


def _cells(function: Any) -> list[Any]:
    held = []
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # no value yet
            held.append(cell.cell_contents)
    return held


def _slots(thing: Any) -> dict[str, Any]:
    names = [name for kind in type(thing).__mro__ for name in _names(vars(kind).get("__slots__"))]
    return {name: getattr(thing, name) for name in names if hasattr(thing, name)}


def _names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots or ()


def _value(value: Any, seen: tuple[int, ...]) -> Any:
    """A value as something with a stable hash; `seen` are those that it is part of."""
    if isinstance(value, PLAIN) or hasattr(value, "tobytes") or hasattr(value, "detach"):
        return value
    if id(value) in seen:
        return type(value).__name__
    inside = (*seen, id(value))
    if isinstance(value, Mapping):
        items = {str(_value(key, inside)): _value(item, inside) for key, item in value.items()}
        return [(key, items[key]) for key in sorted(items)]
    if isinstance(value, tuple | list):
        return [_value(item, inside) for item in value]
    if isinstance(value, set | frozenset):
        return sorted(str(_value(item, inside)) for item in value)
    if isinstance(value, types.ModuleType):
        return value.__name__
    if callable(value):
        return [getattr(value, "__qualname__", ""), _code(value, seen)]
    attributes = {**getattr(value, "__dict__", {}), **_slots(value)}
    if isinstance(value, Enum) or not attributes:
        return re.sub(" at 0x[0-9a-f]+", "", repr(value))
    return [_code(type(value), inside), _value(attributes, inside)]


def _library(thing: Any) -> str:
    """What tells a function or class of an installed library from another; none for one's own."""
    kind = thing if hasattr(thing, "__qualname__") else type(thing)
    module = str(getattr(kind, "__module__", ""))
    library = module.partition(".")[0]
    if library == OURS or not is_installed(place(library)[1]):
        return ""
    return f"{module}.{kind.__qualname__} of {version(library)}"


def _followed(thing: Any) -> frozenset[str]:
    """The packages whose code counts: attrcheck's own, and that of what is registered."""
    return frozenset({OURS, str(getattr(thing, "__module__", "")).partition(".")[0]})


def _nodes(thing: Any) -> list[tuple[Source, ast.AST]]:
    """Where a function or class stands in its source; nothing where it has none."""
    if isinstance(thing, types.FunctionType):
        code, home = thing.__code__, thing.__globals__
        source = read_source(code.co_filename, home.get("__package__") or "")
        return _at(source, code.co_name, code.co_firstlineno)
    source = _source_of_class(thing)
    if source is None:
        return []
    return [
        (source, node)
        for node in ast.walk(source.tree)
        if isinstance(node, ast.ClassDef) and node.name == thing.__name__
    ]


def _at(source: Source | None, name: str, line: int) -> list[tuple[Source, ast.AST]]:
    """The definitions of this name that begin at a line; all lambdas of a line count together."""
    if source is None:
        return []
    kinds = ast.Lambda if name == "<lambda>" else (ast.FunctionDef, ast.AsyncFunctionDef)
    return [
        (source, node)
        for node in ast.walk(source.tree)
        if isinstance(node, kinds)
        and getattr(node, "name", name) == name
        and line in (node.lineno, getattr(node, "first_line", node.lineno))
    ]


def _source_of_class(kind: type) -> Source | None:
    """From the code of a method where there is one: two conftest files share one module name."""
    for value in vars(kind).values():
        function = getattr(value, "__func__", getattr(value, "fget", value))
        if isinstance(function, types.FunctionType) and function.__module__ == kind.__module__:
            file = function.__code__.co_filename
            if source := read_source(file, function.__globals__.get("__package__") or ""):
                return source
    if kind.__module__ not in sys.modules:
        with suppress(ImportError):
            import_module(kind.__module__)
    return source_of(kind.__module__)


def _compiled(thing: Any) -> Any:
    """Code without a source, as of `exec`: what it was compiled to."""
    if isinstance(thing, types.FunctionType):
        return _instructions(thing.__code__)
    parts = sorted((name, value) for name, value in vars(thing).items() if callable(value))
    methods = [(name, _compiled(value)) for name, value in parts if hasattr(value, "__code__")]
    return [thing.__qualname__, methods, [base.__qualname__ for base in thing.__bases__]]


def _instructions(code: types.CodeType) -> list[Any]:
    constants = [
        _instructions(item) if isinstance(item, types.CodeType) else repr(item)
        for item in code.co_consts
    ]
    return [code.co_code.hex(), constants, list(code.co_names), list(code.co_varnames)]
