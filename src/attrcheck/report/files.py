"""Write the report's files, each whole or not at all, and each whatever becomes of the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrcheck.engine.wire import dumps
from attrcheck.errors import cut
from attrcheck.report import markdown
from attrcheck.report.text import for_json
from attrcheck.report.types import Document
from attrcheck.store.files import write_whole


def write(document: Document, folder: Path) -> tuple[list[Path], list[str]]:
    """Write the report in every format: the files written, and for each other one why it is not."""
    paths, problems = [], []
    for name, render in FORMATS.items():
        try:
            content = render(document).encode()
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


def as_json(document: Document) -> str:
    """The text of `report.json`."""
    return for_json(dumps(document, indent=1, sort_keys=True, ensure_ascii=False)) + "\n"


FORMATS: dict[str, Callable[[Document], str]] = {
    "report.json": as_json,
    "report.md": markdown.render,
}
"""The files of a report, and what makes their text."""
