"""Dataclasses as JSON and back: how results cross to the controller and into `report.json`."""

from __future__ import annotations

import base64
import json
import types
import zlib
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

PLAIN = (str, int, float, list, dict, type(None))
LOCAL: Mapping[str, Any] = {"local": True}
"""Metadata of a field that does not cross."""


def dumps(value: Any, **settings: Any) -> str:
    """JSON text, exact to the bit; raises ValueError for NaN, which JSON does not know."""
    return json.dumps(plain(value), allow_nan=False, **settings)


def loads(kind: type[T], text: str) -> T:
    """The inverse of `dumps`."""
    return cast(T, revive(kind, json.loads(text)))


def plain(value: Any) -> Any:
    """A value as JSON can hold it: dataclasses as objects, without what is at its default."""
    if is_dataclass(value):
        parts = ((name, getattr(value, name), default) for name, default in sent(type(value)))
        return {
            key(name): plain(part)
            for name, part, default in parts
            if type(part) is not type(default) or part != default
        }
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return packed(value)
    return value


def packed(array: NDArray[Any]) -> dict[str, Any]:
    """An array, exact to the bit: its type, its shape and its bytes, compressed."""
    ordered = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    content = base64.b64encode(zlib.compress(ordered.tobytes(), level=1)).decode()
    return {"dtype": ordered.dtype.str, "shape": list(array.shape), "content": content}


def unpacked(data: Mapping[str, Any]) -> NDArray[Any]:
    """The inverse of `packed`."""
    content = zlib.decompress(base64.b64decode(data["content"]))
    return np.frombuffer(content, data["dtype"]).reshape(data["shape"])


def revive(kind: Any, data: Any) -> Any:
    """The value of this type that `plain` made the data from."""
    if data is None:
        return None
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        known = hints(cast(type, kind))
        names = {key(name): name for name in known}
        return cast(Any, kind)(
            **{names[name]: revive(known[names[name]], item) for name, item in data.items()}
        )
    if origin in (Union, types.UnionType):
        [kind] = [option for option in arguments if option is not type(None)]
        return revive(kind, data)
    if origin is list:
        return [revive(arguments[0], item) for item in data]
    if origin is tuple:
        return tuple(revive(arguments[0], item) for item in data)
    if origin is dict:
        return {name: revive(arguments[1], item) for name, item in data.items()}
    if origin is np.ndarray:
        return unpacked(data)
    return data


def key(field: str) -> str:
    """The name of a field in JSON: an underscore behind it only avoids a word of Python."""
    return field.rstrip("_")


@cache
def sent(kind: type) -> list[tuple[str, Any]]:
    """The fields of a dataclass that cross, each with the plain default at which it need not."""
    return [(part.name, _default(part)) for part in fields(kind) if not part.metadata.get("local")]


def optional(kind: type) -> set[str]:
    """The fields that are left out at times."""
    return {name for name, default in sent(kind) if default is not MISSING}


def _default(part: Field[Any]) -> Any:
    default = part.default_factory() if part.default_factory in (dict, list) else part.default
    return default if isinstance(default, PLAIN) else MISSING


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass and their types."""
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind)}
