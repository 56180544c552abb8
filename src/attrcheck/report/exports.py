"""Read a report that was written, and show it in any format: `attrcheck report`."""

from __future__ import annotations

import csv
import io
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from attrcheck.engine.wire import loads
from attrcheck.errors import AttrcheckError
from attrcheck.report import (
    badges,
    carding,
    changes,
    comparing,
    files,
    groups,
    markdown,
    powers,
    summary,
    terminal,
)
from attrcheck.report.comparison import Comparison
from attrcheck.report.details import MAPS, Details
from attrcheck.report.document import SCHEMA
from attrcheck.report.html import comparison as comparison_page
from attrcheck.report.html import page
from attrcheck.report.power import Power, study
from attrcheck.report.text import for_latex, for_terminal
from attrcheck.report.types import Document
from attrcheck.store.files import write_whole
from attrcheck.store.inventory import REPORT

T = TypeVar("T")

FIGURES = ("score", "low", "high", "rank")
SCORES = ("case", "dataset", "model", "protocol", "method", "status", *FIGURES)
IMAGES = ("case", "method", "image", "score")


def read(path: Path) -> tuple[Document, Details]:
    """A report and its details; see `locate` for what the path may be.

    Without details, or with those of another run, it has no pictures.
    """
    file = locate(path)
    document = read_document(file)
    beside = details_of(file)
    details = _revive(Details, beside) if beside.exists() else Details()
    return document, details if details.started == document.run.started else Details()


def details_of(file: Path) -> Path:
    """Where the details of a report are: report.json has report.details.json beside it."""
    return file.with_suffix(f".details{file.suffix}")


def locate(path: Path) -> Path:
    """The `report.json` of a report's folder or of a store; a file is taken for one."""
    if not path.is_dir():
        return path
    for file in (path / files.JSON, path / REPORT / files.JSON):
        if file.is_file():
            return file
    raise AttrcheckError(
        f"there is no report in {path}: give the folder of a report, or the store of a run that "
        "came to its end"
    )


def read_document(path: Path) -> Document:
    """The document of a report; an error says what is wrong with it."""
    file = locate(path)
    document = _revive(Document, file)
    if document.schema != SCHEMA:
        raise AttrcheckError(
            f"{file} is a report of schema {document.schema}, and this version reads {SCHEMA}: "
            "run again with --attr-report"
        )
    return document


def as_csv(document: Document, details: Details) -> str:
    """Every score, a row each."""
    return _csv(
        SCORES,
        (
            [case.id, case.dataset, case.model, case.protocol, method, score.status]
            + [getattr(score, name) for name in FIGURES]
            for case in document.cases
            for method, score in case.scores.items()
        ),
    )


def images_as_csv(document: Document, details: Details) -> str:
    """The scores of single images, a row each; `image` is the position in the dataset."""
    return _csv(IMAGES, _of_images(details))


def as_latex(document: Document, details: Details) -> str:
    """The board as a table for a paper, the best of each column in bold."""
    entries = document.leaderboard
    if not entries:
        raise AttrcheckError(f"nothing to print: {terminal.no_board(document)}")
    columns = [
        _best_bold([f"{entry.meta_rank:+.2f}" for entry in entries], max),
        _best_bold([f"{entry.mean_rank:.1f}" for entry in entries], min),
        _best_bold(
            [f"{100 * entry.wins:.0f}" if entry.wins is not None else "" for entry in entries], max
        ),
    ]
    rows = [
        [
            str(entry.rank),
            for_latex(entry.method),
            meta_rank,
            "--" if entry.low is None else f"$[{entry.low:+.2f}, {entry.high:+.2f}]$",
            for_latex(groups.short(entry.letters)) or "--",
            mean_rank,
            wins,
        ]
        for entry, meta_rank, mean_rank, wins in zip(entries, *columns, strict=True)
    ]
    heads = ["", "Method", "Meta-Rank", r"95\% interval", "Group", "Mean rank", r"Wins (\%)"]
    head, *body = [" & ".join(row) + r" \\" for row in (heads, *rows)]
    cases = f"% {len(document.cases)} cases; needs \\usepackage{{booktabs}}"
    start, end = r"\begin{tabular}{rlrrlrr}", r"\end{tabular}"
    lines = [cases, start, r"\toprule", head, r"\midrule", *body, r"\bottomrule", end]
    return "\n".join(lines) + "\n"


def images_as_parquet(document: Document, details: Details) -> bytes:
    """The same rows as `images_as_csv`, as Parquet: a tenth of the size, with types."""
    try:
        from pyarrow import BufferOutputStream, parquet, table
    except ImportError as error:
        raise AttrcheckError(
            'Parquet needs pyarrow: pip install "attrcheck[parquet]", or take --format images'
        ) from error
    rows = list(_of_images(details))
    columns = {name: [row[at] for row in rows] for at, name in enumerate(IMAGES)}
    content = BufferOutputStream()
    parquet.write_table(table(columns), content)
    return bytes(content.getvalue())


FORMATS: dict[str, Callable[[Document, Details], str | bytes]] = {
    "text": lambda document, details: terminal.render(document) + "\n",
    "html": page.render,
    "md": lambda document, details: markdown.render(document),
    "csv": as_csv,
    "images": images_as_csv,
    "parquet": images_as_parquet,
    "latex": as_latex,
    "json": lambda document, details: files.as_json(document),
    "badge": badges.badge,
    "trend": badges.trend,
}
"""By name; `images` is a CSV of the scores of single images, and so is `parquet`."""


def summarised(path: Path) -> str:
    """The summary of a written report, with what moved if it was compared with a baseline."""
    beside = locate(path).with_name(files.COMPARISON)
    comparison = _revive(Comparison, beside) if beside.exists() else None
    return summary.render(read(path)[0], comparison)


COMPARISONS: dict[str, Callable[[Comparison], str]] = {
    "text": changes.render,
    "md": changes.as_markdown,
    "html": comparison_page.render,
    "json": changes.as_json,
}
"""Formats of a comparison, by name."""


def show(path: Path, name: str, output: Path | None) -> None:
    """Print a written report in a format, or write it to a file."""
    _put(FORMATS[name](*read(path)), name, output)
    maps = locate(path).with_name(MAPS)
    if output is None or name != "html" or not maps.is_dir():
        return
    beside = output.absolute().with_name(MAPS)
    try:
        if not (beside.exists() and beside.samefile(maps)):
            shutil.copytree(maps, beside, dirs_exist_ok=True)
    except OSError as error:
        raise AttrcheckError(f"{beside} cannot be written ({error.strerror or error})") from error


def show_comparison(old: Path, new: Path, name: str, output: Path | None) -> None:
    """Print what moved between two written reports in a format, or write it to a file."""
    comparison = comparing.compare(read(old), read(new), (str(old), str(new)))
    _put(COMPARISONS[name](comparison), name, output)


POWERS: dict[str, Callable[[Power], str]] = {
    "text": powers.render,
    "md": powers.as_markdown,
    "json": powers.as_json,
}
"""Formats of what would tell two methods apart, by name."""


def show_power(
    report: Path, one: str, other: str, power: float, name: str, output: Path | None
) -> None:
    """Print what would tell two methods of a written report apart, or write it to a file."""
    _put(POWERS[name](study(*read(report), one, other, power)), name, output)


def show_card(report: Path, method: str, name: str, output: Path | None) -> None:
    """Print the card of a method, or write it to a file; a report that is not there is not read."""
    document = read_document(report) if report.exists() else None
    _put(carding.FORMATS[name](carding.of(method, report, document)), name, output)


def _put(content: str | bytes, name: str, output: Path | None) -> None:
    """Print what is in a format, or write it to a file."""
    if output is None:
        if isinstance(content, bytes):
            raise AttrcheckError(f"{name} is not a text to print: add --output FILE")
        sys.stdout.write(content)
        return
    try:
        write_whole(output, content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise AttrcheckError(f"{output} cannot be written ({error.strerror})") from error


def _of_images(details: Details) -> Iterator[list[object]]:
    """The scores of single images: case, method, position in the dataset, score."""
    for case, known in details.cases.items():
        for method, scores in zip(known.methods, known.image_scores, strict=True):
            for image, score in enumerate(scores):
                if np.isfinite(score):
                    yield [case, method, image, float(score)]


def _best_bold(cells: Sequence[str], best: Callable[[list[float]], float]) -> list[str]:
    """Numbers in math mode, and the best of them, as it is printed, in bold."""
    numbers = [float(cell) for cell in cells if cell]
    return [
        "--"
        if not cell
        else rf"$\mathbf{{{cell}}}$"
        if float(cell) == best(numbers)
        else f"${cell}$"
        for cell in cells
    ]


def _revive(kind: type[T], file: Path) -> T:
    try:
        return loads(kind, file.read_text(encoding="utf-8"))
    except OSError as error:
        raise AttrcheckError(f"{file} cannot be read ({error.strerror})") from error
    except Exception as error:  # whatever a file of another kind or version makes of its readers
        raise AttrcheckError(
            f"{file} is not a report of this version of attrcheck: run again with --attr-report"
        ) from error


def _csv(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headers)
    for row in rows:
        writer.writerow([for_terminal(cell) if isinstance(cell, str) else cell for cell in row])
    return text.getvalue()
