"""Write the report's files, each whole or not at all."""

from __future__ import annotations

from pathlib import Path

from attrcheck.engine.wire import dumps
from attrcheck.report import markdown
from attrcheck.report.types import Document
from attrcheck.store.files import write_whole


def write(document: Document, folder: Path) -> list[Path]:
    """Write `report.json` and `report.md`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": dumps(document, indent=1, sort_keys=True) + "\n",
        "report.md": markdown.render(document),
    }
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    return [folder / name for name in texts]
