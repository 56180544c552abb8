"""Write the report's files, each whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from attrcheck.report import markdown


def write(document: dict[str, Any], folder: Path) -> list[Path]:
    """Write `report.json` and `report.md`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": json.dumps(document, indent=1, sort_keys=True, allow_nan=False) + "\n",
        "report.md": markdown.render(document),
    }
    for name, text in texts.items():
        temporary = folder / f".{name}.tmp"
        try:
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(folder / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
    return [folder / name for name in texts]
