"""Dataclasses as JSON and back: how results cross to the controller and into `report.json`."""

from __future__ import annotations

import base64
import json
import types
import zlib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache, partial
from typing import Any, TypeAlias, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")
Maker: TypeAlias = Callable[[Any], Any]

SCALARS = (float, str, int, bool, type(None))
ASIDE = "@array"
"""Stands for an array that is kept beside the JSON."""
LOCAL: Mapping[str, Any] = {"local": True}
"""Metadata of a field that does not cross."""


def dumps(value: Any, **settings: Any) -> str:
    """JSON text, exact to the bit; raises ValueError for NaN, which JSON does not know."""
    return json.dumps(plain(value), allow_nan=False, **settings)


def loads(kind: type[T], text: str) -> T:
    """The inverse of `dumps`."""
    return cast(T, revive(kind, json.loads(text)))


def plain(value: Any, pack: Callable[[NDArray[Any]], Any] | None = None) -> Any:
    """A value as JSON can hold it: dataclasses as objects, without what is at its default."""
    if type(value) in SCALARS:
        return value
    if is_dataclass(value):
        return {
            name: plain(part, pack)
            for field, name, default in sent(cast(type, type(value)))
            if type(part := getattr(value, field)) is not type(default) or part != default
        }
    if isinstance(value, Mapping):
        return {name: plain(item, pack) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, pack) for item in value]
    if isinstance(value, np.ndarray):
        return (pack or packed)(value)
    return value


def apart(value: Any) -> tuple[Any, dict[str, NDArray[Any]]]:
    """A value as JSON can hold it, but for its arrays, which come beside it by name."""
    arrays: dict[str, NDArray[Any]] = {}

    def put_aside(array: NDArray[Any]) -> dict[str, str]:
        name = str(len(arrays))
        arrays[name] = array
        return {ASIDE: name}

    return plain(value, put_aside), arrays


def together(kind: type[T], data: Any, arrays: Mapping[str, NDArray[Any]]) -> T:
    """The inverse of `apart`."""

    def restored(part: Any) -> Any:
        if isinstance(part, list):
            return [restored(item) for item in part]
        if not isinstance(part, dict):
            return part
        if ASIDE in part:
            return {ASIDE: arrays[part[ASIDE]]}
        return {name: restored(item) for name, item in part.items()}

    return cast(T, revive(kind, restored(data)))


def packed(array: NDArray[Any]) -> dict[str, Any]:
    """An array, exact to the bit: its type, its shape and its bytes, compressed."""
    ordered = array.astype(array.dtype.newbyteorder("<"), order="C", copy=False)
    content = base64.b64encode(zlib.compress(ordered.tobytes(), level=1)).decode()
    return {"dtype": ordered.dtype.str, "shape": list(array.shape), "content": content}


def unpacked(data: Mapping[str, Any]) -> NDArray[Any]:
    """The inverse of `packed`; of what was put aside, the array."""
    if ASIDE in data:
        return cast("NDArray[Any]", data[ASIDE])
    content = zlib.decompress(base64.b64decode(data["content"]))
    return np.frombuffer(content, data["dtype"]).reshape(data["shape"])


def revive(kind: Any, data: Any) -> Any:
    """The value of this type that `plain` made the data from."""
    make = maker(kind)
    return data if make is None else make(data)


@cache
def maker(kind: Any) -> Maker | None:
    """What revives data of this type; None where they are what they were."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return partial(_revive_fields, cast(type, kind))
    if origin is np.ndarray:
        return unpacked
    if origin is tuple:
        return lambda data: tuple(revive(arguments[0], item) for item in data)
    if origin in (Union, types.UnionType):
        arguments = tuple(option for option in arguments if option is not type(None))
    if origin not in WRAPS or (make := maker(arguments[-1])) is None:
        return None
    return partial(WRAPS[origin], make)


WRAPS: dict[Any, Callable[[Maker, Any], Any]] = {
    Union: lambda make, data: None if data is None else make(data),
    types.UnionType: lambda make, data: None if data is None else make(data),
    list: lambda make, data: [make(item) for item in data],
    dict: lambda make, data: {name: make(item) for name, item in data.items()},
}
"""How what revives a part revives an optional one, a list or the values of a dict of them."""


def _revive_fields(kind: type, data: Mapping[str, Any]) -> Any:
    makers = field_makers(kind)
    revived = {}
    for name, item in data.items():
        field, make = makers[name]
        revived[field] = item if make is None else make(item)
    return kind(**revived)


@cache
def field_makers(kind: type) -> dict[str, tuple[str, Maker | None]]:
    """By the name in JSON: the field, and what revives it."""
    return {key(name): (name, maker(type_)) for name, type_ in hints(kind).items()}


def key(field: str) -> str:
    """The name of a field in JSON: an underscore behind it only avoids a word of Python."""
    return field.rstrip("_")


@cache
def sent(kind: type) -> list[tuple[str, str, Any]]:
    """The fields of a dataclass that cross: name, name in JSON, and default at which none need."""
    return [
        (part.name, key(part.name), _default(part))
        for part in fields(kind)
        if not part.metadata.get("local")
    ]


def optional(kind: type) -> set[str]:
    """The names in JSON of fields that are left out at times."""
    return {name for _, name, default in sent(kind) if default is not MISSING}


def _default(part: Field[Any]) -> Any:
    default = part.default_factory() if part.default_factory in (dict, list) else part.default
    return default if isinstance(default, (*SCALARS, list, dict)) else MISSING


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass and their types."""
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind)}
