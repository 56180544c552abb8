"""Dataclasses as JSON and back: how results cross to the controller and into `report.json`."""

from __future__ import annotations

import base64
import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, cast, get_args, get_origin, get_type_hints

import numpy as np

T = TypeVar("T")


def dumps(value: Any, **settings: Any) -> str:
    """JSON text, exact to the bit; raises ValueError for NaN, which JSON does not know."""
    return json.dumps(plain(value), allow_nan=False, **settings)


def loads(kind: type[T], text: str) -> T:
    """The inverse of `dumps`."""
    return cast(T, revive(kind, json.loads(text)))


def plain(value: Any) -> Any:
    """A value as JSON can hold it: dataclasses as objects, arrays as base64 of their bytes."""
    if is_dataclass(value):
        return {key(field.name): plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return base64.b64encode(value.astype("<f8").tobytes()).decode()
    return value


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
        return np.frombuffer(base64.b64decode(data), "<f8")
    return data


def key(field: str) -> str:
    """The name of a field in JSON: an underscore behind it only avoids a word of Python."""
    return field.rstrip("_")


@cache
def hints(kind: type) -> dict[str, Any]:
    """The fields of a dataclass and their types."""
    known = get_type_hints(kind)
    return {field.name: known[field.name] for field in fields(kind)}
