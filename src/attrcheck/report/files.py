"""Write the report's files, each whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrcheck.engine.wire import dumps
from attrcheck.report import markdown
from attrcheck.report.types import Document
from attrcheck.store.files import write_whole


def write(document: Document, folder: Path) -> list[Path]:
    """Write `report.json` and `report.md`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": json_text(document),
        "report.md": markdown.render(document),
    }
    for name, text in texts.items():
        write_whole(folder / name, text.encode())
    return [folder / name for name in texts]


def json_text(document: Document) -> str:
    """JSON in little room, with a line of its own for every case, check and the like."""
    parts = []
    for name in sorted(vars(document)):
        value = getattr(document, name)
        lines = ",\n".join(map(_compact, value)) if isinstance(value, list) else ""
        parts.append(f'"{name}":' + (f"[\n{lines}\n]" if lines else _compact(value)))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _compact(value: Any) -> str:
    return dumps(value, sort_keys=True, separators=(",", ":"))
