"""Names in a project's pyproject.toml, of datasets and models that specs stand for.

    [tool.attrcheck.datasets]
    imagenet = "folder:/data/imagenet/val"
    birds = { spec = "folder:data/birds", masks = "../birds_masks" }

    [tool.attrcheck.models]
    r50 = "timm:resnet50.a1_in1k"

Relative paths begin at the folder of that file. Such names are listed and selected as registered
ones are.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from attrcheck.datasets import dataset
from attrcheck.errors import AttrcheckError, suggest
from attrcheck.models import model
from attrcheck.registry import Registry
from attrcheck.specs import anchored

FILE = "pyproject.toml"
TABLES: dict[str, Registry[Any]] = {"datasets": dataset, "models": model}


class TableError(AttrcheckError):
    """A table that cannot be read; the message names the file and the entry."""


def find(folder: Path) -> Path | None:
    """The pyproject.toml of a folder, or of the nearest one above it."""
    return next((up / FILE for up in (folder, *folder.parents) if (up / FILE).is_file()), None)


def bind(file: Path | None) -> None:
    """Bind the names in the tables of a file, if there are any."""
    if file is None or not file.is_file():
        return
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise TableError(f"{file} cannot be read ({error})") from error
    tables = settings.get("tool", {}).get("attrcheck", {})
    for kind, table in tables.items():
        where = f"{file}: [tool.attrcheck.{kind}]"
        if kind not in TABLES or not isinstance(table, dict):
            raise TableError(
                f"{where} is not a table that attrcheck knows; {suggest(kind, TABLES)}"
            )
        for name, entry in table.items():
            options = {"spec": entry} if isinstance(entry, str) else entry
            if not isinstance(options, dict) or not isinstance(options.get("spec"), str):
                raise TableError(
                    f'{where}: write {name} = "prefix:rest", or {name} = {{ spec = "prefix:rest", '
                    f"... }}, not {entry!r}"
                )
            rest = {option: value for option, value in options.items() if option != "spec"}
            try:
                TABLES[kind].bind(name, anchored(options["spec"], file.parent), rest)
            except AttrcheckError as error:
                raise TableError(f"{where}: {error}") from error
