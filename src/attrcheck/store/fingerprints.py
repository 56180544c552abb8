"""Fingerprints: a short hash of any value or of code with all that it uses, alike everywhere."""

from __future__ import annotations

import array
import ast
import functools
import io
import logging
import re
import sys
import types
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from attrcheck.store.closures import Closure
from attrcheck.store.digests import digest, is_tensor
from attrcheck.store.places import is_installed, place, version
from attrcheck.store.sources import OURS, Source, read_source, source_of

PLAIN = (bool, int, float, complex, str, bytes, type(None))
ROOT = Path(__file__).parent.parent
_KNOWN: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()


def of_code(thing: Callable[..., Any]) -> str:
    """Hash of a function, class or callable object: of its code and of all that it uses.

    See `store.closures` for what counts. The arguments of a partial, what a closure holds, defaults
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


def of_module(name: str) -> str:
    """Hash of all code of a module, imported or not."""
    source = source_of(name)
    if source is None:
        raise ImportError(f"there is no source of {name}", name=name)
    return digest(ast.dump(source.tree))


@functools.cache
def of_tree(names: tuple[str, ...]) -> str:
    """Hash of all code of these rooms and modules of attrcheck."""
    trees = (read_source(str(path), "") for path in files_of(names))
    return digest(*(ast.dump(source.tree) for source in trees if source))


def files_of(names: Iterable[str]) -> list[Path]:
    """The source files of these rooms and modules of attrcheck."""
    paths = (path for name in names for path in (ROOT / f"{name}.py", *(ROOT / name).rglob("*.py")))
    return sorted(path for path in paths if path.exists())


def closure_of(thing: Callable[..., Any]) -> Closure:
    """The definitions that the code of a function or class reaches, and the libraries."""
    home = str(getattr(thing, "__module__", "")).partition(".")[0]
    closure = Closure(frozenset({OURS, home}))
    for source, node in _nodes(thing):
        closure.add(source, node)
    return closure


def _code(thing: Any, seen: tuple[int, ...]) -> Any:
    """Something with a stable hash for what can be called; `seen` are those that hold it."""
    if id(thing) in seen:
        return getattr(thing, "__qualname__", type(thing).__name__)
    inside = (*seen, id(thing))
    if isinstance(thing, functools.partial):
        if isinstance(thing.func, functools.partial):  # one partial made from another is the same
            return _code(_flat(thing), seen)
        return ["partial", _code(thing.func, inside), _value([thing.args, thing.keywords], inside)]
    if isinstance(thing, types.MethodType):
        return ["method", _code(thing.__func__, inside), _value(thing.__self__, inside)]
    defined = isinstance(thing, types.FunctionType | type)
    if not defined and not isinstance(thing, types.BuiltinFunctionType):
        return ["object", _code(type(thing), inside), _value(_attributes(thing), inside)]
    if (name := _library(thing)) and (seen or not defined):  # what is registered is looked into
        return name
    closure = closure_of(thing)
    code = closure.parts() or _without_source(thing, inside)
    return ["code", code, _called(closure, inside), _globals(thing, closure), _held(thing, inside)]


def _flat(thing: functools.partial[Any]) -> functools.partial[Any]:
    return functools.partial(thing.func, *thing.args, **thing.keywords)


def _held(thing: Any, seen: tuple[int, ...]) -> Any:
    """What a function or class holds that its source does not tell."""
    if isinstance(thing, type):
        plain = {
            name: value
            for name, value in sorted(vars(thing).items())
            if isinstance(value, PLAIN) and not name.startswith("__")
        }
        # Methods of a class that a function made may hold what that function knew.
        cells = {name: held for name, part in vars(thing).items() if (held := _cells(part))}
        return _value([plain, cells], seen)
    attributes = {name: value for name, value in vars(thing).items() if name != "__wrapped__"}
    wrapped = getattr(thing, "__wrapped__", None)
    held = [_cells(thing), thing.__defaults__, thing.__kwdefaults__, attributes, wrapped]
    return _value(held, seen)


def _cells(function: Any) -> list[Any]:
    held = []
    for cell in getattr(function, "__closure__", None) or ():
        with suppress(ValueError):  # no value yet
            held.append(cell.cell_contents)
    return held


def _globals(thing: Any, closure: Closure) -> list[Any]:
    """Plain values of the module-level names that are used: they may be set from elsewhere."""
    own = getattr(thing, "__globals__", {})
    values = []
    for module, name in sorted(closure.variables):
        home = own if own.get("__name__") == module else vars(sys.modules.get(module, types))
        value = home.get(name)
        if isinstance(value, PLAIN):
            values.append((name, repr(value)))
    return values


def _called(closure: Closure, seen: tuple[int, ...]) -> list[Any]:
    """The registered things that are asked for by name, as in `attrcheck.method.get("lrp")`."""
    things = []
    for kind, name in sorted(closure.registered):
        registry = getattr(sys.modules[OURS], kind)
        if name in registry:
            things.append([kind, name, _value(registry.get(name), seen)])
    return things


def _value(value: Any, seen: tuple[int, ...]) -> Any:
    """A value as something with a stable hash; `seen` are those that it is part of."""
    if isinstance(value, (*PLAIN, np.ndarray, np.generic)) or is_tensor(value):
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
    if isinstance(value, array.array | bytearray | memoryview):
        return [type(value).__name__, getattr(value, "typecode", ""), bytes(value)]
    if isinstance(value, types.ModuleType):
        return version(value.__name__.partition(".")[0])
    if isinstance(value, io.BytesIO | io.StringIO):
        return [type(value).__name__, value.tell(), value.getvalue()]
    if hasattr(type(value), "__array_interface__"):  # as an image of PIL
        return [type(value).__name__, np.asarray(value)]
    if _is_generator(value):
        return [type(value).__name__, value.get_state()]
    if isinstance(value, io.IOBase | logging.Logger):
        return [type(value).__name__, str(getattr(value, "name", ""))]
    if isinstance(value, np.random.Generator):
        return ["generator", _value(value.bit_generator.state, inside)]
    if isinstance(value, Enum):
        return [type(value).__qualname__, value.name]
    if callable(value):
        return [getattr(value, "__qualname__", ""), _code(value, seen)]
    attributes = _attributes(value)
    if not attributes:
        return re.sub(" at 0x[0-9a-f]+", "", repr(value), flags=re.IGNORECASE)
    return [_code(type(value), inside), _value(attributes, inside)]


def _attributes(thing: Any) -> dict[str, Any]:
    """What an object holds: attributes and slots; of a network, all but its hooks' numbers."""
    names = [name for kind in type(thing).__mro__ for name in _names(vars(kind).get("__slots__"))]
    slots = {name: getattr(thing, name) for name in names if hasattr(thing, name)}
    attributes = {**getattr(thing, "__dict__", {}), **slots}
    if "_forward_hooks" in attributes:  # a torch module: hooks are numbered across the process
        return {
            name: list(value.values())
            if name.endswith("_hooks") and isinstance(value, dict)
            else value
            for name, value in attributes.items()
            if value is not None and not name.endswith(("_hooks_with_kwargs", "_always_called"))
        }
    return attributes


def _names(slots: Any) -> Iterable[str]:
    return (slots,) if isinstance(slots, str) else slots or ()


def _is_generator(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Generator)


def _library(thing: Any) -> str:
    """What tells a function or class of an installed library from another; none for one's own."""
    module = str(getattr(thing, "__module__", None) or "builtins")
    library = module.partition(".")[0]
    if library == OURS or not is_installed(place(library)[1]):
        return ""
    return f"{module}.{thing.__qualname__} of {version(library)}"


def _nodes(thing: Any) -> list[tuple[Source, ast.AST]]:
    """Where a function or class stands in its source; nothing where it has none."""
    if isinstance(thing, types.FunctionType):
        code = thing.__code__
        source = read_source(
            code.co_filename, thing.__globals__.get("__package__") or "", thing.__module__
        )
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
            package = function.__globals__.get("__package__") or ""
            source = read_source(function.__code__.co_filename, package, kind.__module__)
            if source is not None:
                return source
    return source_of(kind.__module__)


def _without_source(thing: Any, seen: tuple[int, ...]) -> Any:
    """Code of `exec`, or a class of `type()`: what it was compiled to, or made of."""
    if isinstance(thing, types.FunctionType):
        return _instructions(thing.__code__)
    parts = {
        name: value
        for name, value in vars(thing).items()
        if isinstance(value, types.FunctionType) or not name.startswith("__")
    }
    bases = [_code(base, seen) for base in thing.__bases__]
    return [thing.__qualname__, bases, _value(parts, seen)]


def _instructions(code: types.CodeType) -> list[Any]:
    constants = [
        _instructions(item) if isinstance(item, types.CodeType) else repr(item)
        for item in code.co_consts
    ]
    return [code.co_code.hex(), constants, list(code.co_names), list(code.co_varnames)]
