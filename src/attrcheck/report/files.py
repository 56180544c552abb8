"""Write the report's files, each whole or not at all, and each whatever becomes of the others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrcheck.engine.wire import dumps
from attrcheck.errors import cut
from attrcheck.report import markdown
from attrcheck.report.details import Details
from attrcheck.report.html import page
from attrcheck.report.text import for_json
from attrcheck.report.types import Document
from attrcheck.store.files import write_whole

JSON, DETAILS = "report.json", "report.details.json"


def write(
    document: Document, folder: Path, details: Details | None = None
) -> tuple[list[Path], list[str]]:
    """Write the report in every format: the files written, and for each other one why it is not."""
    paths, problems = [], []
    for name, render in FORMATS.items():
        try:
            content = render(document, details or Details()).encode()
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / name, content)
        except OSError as error:
            why = error.strerror or type(error).__name__
            problems.append(f"{name} cannot be written to {folder} ({why}): try --attr-report-dir")
        except Exception as error:  # a fault of one format must not cost the others, nor the gates
            problems.append(cut(f"{name} cannot be made: {type(error).__name__}: {error}"))
        else:
            paths.append(folder / name)
    return paths, problems


def copy(folder: Path, to: Path) -> list[str]:
    """Put a folder in the place of an earlier one; returns why it cannot be done, if so."""
    try:
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(folder, to)
    except (OSError, shutil.Error) as error:
        return [cut(f"{to} cannot be written ({error}): try --attr-report-dir")]
    return []


def as_json(document: Document) -> str:
    """JSON in little room, with a line of its own for every case, check and the like."""
    parts = []
    for name in sorted(vars(document)):
        value = getattr(document, name)
        lines = ",\n".join(map(_compact, value)) if isinstance(value, list) else ""
        parts.append(f'"{name}":' + (f"[\n{lines}\n]" if lines else _compact(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    return for_json(dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


FORMATS: dict[str, Callable[[Document, Details], str]] = {
    JSON: lambda document, details: as_json(document),
    DETAILS: lambda document, details: dumps(details) + "\n",
    "report.md": lambda document, details: markdown.render(document),
    "report.html": page.render,
}
"""The files of a report, and what makes their text."""
