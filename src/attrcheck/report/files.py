"""Write the report's files, each whole or not at all, and each whatever becomes of the others."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from attrcheck.engine.wire import dumps
from attrcheck.errors import cut
from attrcheck.report import changes, markdown
from attrcheck.report.comparison import Comparison
from attrcheck.report.details import Details
from attrcheck.report.html import comparison as comparison_page
from attrcheck.report.html import page
from attrcheck.report.text import for_json
from attrcheck.report.types import Document
from attrcheck.store.files import whole, write_whole

JSON, DETAILS, COMPARISON = "report.json", "report.details.json", "comparison.json"


def set_aside(folder: Path) -> None:
    """Rename the report of an earlier run, so that nobody takes it for that of one that is killed.

    It stays until a complete report takes its place. Of two, that of the complete run stays.
    """
    for path in (folder / name for name in NAMES):
        with suppress(OSError):  # then it cannot be written either, which is told at the end
            if path.is_file():
                if previous(path).exists():
                    path.unlink()
                else:
                    path.rename(previous(path))


def restore(folder: Path) -> None:
    """Give the report that was set aside its names back."""
    for path in (folder / name for name in NAMES):
        with suppress(OSError):
            previous(path).rename(path)


def previous(path: Path) -> Path:
    """Where the report of an earlier run is kept: report.json as report.previous.json."""
    return path.with_suffix(f".previous{path.suffix}")


def write(
    document: Document,
    folder: Path,
    details: Details | None = None,
    written: Iterable[Path] = (),
    comparison: Comparison | None = None,
) -> tuple[list[Path], list[str]]:
    """Write the report in every format: the files written, and for each other one why it is not.

    written: files of the same report elsewhere, to be copied rather than made again. comparison:
    with a baseline, if there is one; where it compares anything, it has files too.
    """
    paths, problems = [], []
    ready = {path.name: path for path in written}
    renders: dict[str, Callable[[], str]] = {
        name: partial(render, document, details or Details()) for name, render in FORMATS.items()
    }
    if comparison is not None and not comparison.nothing:
        renders |= {name: partial(render, comparison) for name, render in COMPARISONS.items()}
    elif not document.missing:
        for name in COMPARISONS:
            with suppress(OSError):
                previous(folder / name).unlink(missing_ok=True)
    for name, make in renders.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if name in ready:
                with whole(folder / name) as temporary:
                    shutil.copyfile(ready[name], temporary)
            else:
                write_whole(folder / name, make().encode())
            if not document.missing:
                previous(folder / name).unlink(missing_ok=True)
        except OSError as error:
            why = error.strerror or type(error).__name__
            problems.append(f"{name} cannot be written to {folder} ({why}): try --attr-report-dir")
        except Exception as error:  # a fault of one format must not cost the others, nor the gates
            problems.append(cut(f"{name} cannot be made: {type(error).__name__}: {error}"))
        else:
            paths.append(folder / name)
    return paths, problems


def keep(document: Document, folder: Path, details: Details) -> tuple[list[Path], list[str]]:
    """Write what other formats can be made of later: the files, or why there are none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (DETAILS, JSON):
            write_whole(folder / name, FORMATS[name](document, details).encode())
    except Exception as error:  # the report's own folder may fare better
        why = getattr(error, "strerror", "") or f"{type(error).__name__}: {error}"
        return [], [cut(f"the report is not kept in {folder} ({why})")]
    return [folder / DETAILS, folder / JSON], []


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
COMPARISONS: dict[str, Callable[[Comparison], str]] = {
    COMPARISON: changes.as_json,
    "comparison.html": comparison_page.render,
}
"""The files of a comparison with a baseline, likewise."""
NAMES = (*FORMATS, *COMPARISONS)
