"""The JSON Schema of `report.json`, made from its types: `python -m attrcheck.report.schema`."""

from __future__ import annotations

import inspect
import json
import types
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from attrcheck.engine.wire import hints, key, optional
from attrcheck.report.types import Document

PATH = Path(__file__).with_name("report.schema.json")
DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCALARS = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


def schema() -> dict[str, Any]:
    """The schema of the whole report."""
    definitions: dict[str, Any] = {}
    root = _of(Document, definitions)
    return {"$schema": DIALECT, "title": "attrcheck report", **root, "$defs": definitions}


def text() -> str:
    """The schema as the file holds it."""
    return json.dumps(schema(), indent=1, sort_keys=True) + "\n"


def _of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; those of dataclasses go to the definitions."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return {}
    if kind in SCALARS:
        return {"type": SCALARS[kind]}
    if is_dataclass(kind):
        assert isinstance(kind, type)
        if kind.__name__ not in definitions:
            definitions[kind.__name__] = {}  # its place, should it hold itself
            definitions[kind.__name__] = _of_dataclass(kind, definitions)
        return {"$ref": f"#/$defs/{kind.__name__}"}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [_of(option, definitions) for option in arguments]}
    if origin in (list, tuple):
        return {"type": "array", "items": _of(arguments[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _of(arguments[1], definitions)}
    raise TypeError(f"{kind} has no schema")


def _of_dataclass(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    properties = {key(name): _of(type_, definitions) for name, type_ in hints(kind).items()}
    return {
        "description": " ".join((inspect.getdoc(kind) or "").split()),
        "type": "object",
        "properties": properties,
        "required": sorted(properties.keys() - optional(kind)),
        "additionalProperties": False,
    }


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
