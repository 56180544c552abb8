"""What lies in a folder of pictures: files, classes, labels, and the folders beside it."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from attrcheck.datasets import DatasetError
from attrcheck.datasets.reading import SUFFIXES

HELD_OUT = ("val", "valid", "validation", "test")
"""Folders of pictures to evaluate on; what models learn from lies beside them in `train`."""
TRAIN = "train"
MASKS = "_masks"
"""The masks of the pictures in `val` lie beside it in `val_masks`."""
LABELS = "labels.csv"
CLASSES = "classes.txt"
MOST_CLASSES = 100_000
FILE_HEADERS = ("file", "filename", "file_name", "path", "image")
LABEL_HEADERS = ("label", "class", "class_name", "target")


class Listing(NamedTuple):
    """Files by their paths from the folder, their labels, and the names of the classes."""

    files: list[str]
    labels: list[int]
    class_names: tuple[str, ...]


def evaluated(path: Path) -> Path:
    """The folder to evaluate on: the one given, or the one that is held out in it."""
    if not path.is_dir():
        kind = "is not a folder" if path.exists() else "does not exist"
        raise DatasetError(f"the folder of pictures {path} {kind}")
    inside = [entry.name for entry in _entries(path) if _is_folder(entry)]
    if not inside or not {name.removesuffix(MASKS) for name in inside} <= {*HELD_OUT, TRAIN}:
        return path
    held_out = [name for name in HELD_OUT if name in inside]
    if len(held_out) == 1:
        return path / held_out[0]
    choice = " or ".join(str(path / name) for name in held_out)
    what = f"say which part to use, {choice}" if choice else f"there is no {HELD_OUT[0]} beside it"
    raise DatasetError(f"{path} has the parts {', '.join(sorted(inside))}: {what}")


def beside(path: Path) -> tuple[Path | None, Path | None]:
    """The folder of the masks, and that of the pictures to learn from, if they are there."""
    masks = path.with_name(path.name + MASKS)
    train = path.with_name(TRAIN) if path.name in HELD_OUT else path
    return masks if masks.is_dir() else None, train if train != path and train.is_dir() else None


def listed(path: Path, labels: Path | None = None, classes: Sequence[str] = ()) -> Listing:
    """The pictures of a folder: by a file of labels, if there is one, else by class folders."""
    if not classes and (path / CLASSES).is_file():
        classes = read_classes(path / CLASSES)
    if labels is None and (path / LABELS).is_file():
        labels = path / LABELS
    return _by_table(path, labels, classes) if labels else _by_folder(path, classes)


def read_classes(path: Path) -> tuple[str, ...]:
    """The names of the classes, one per line, in the order of the labels."""
    names = tuple(line.strip() for line in _text(path).splitlines() if line.strip())
    for name, times in Counter(names).items():
        if times > 1:
            raise DatasetError(f"{path} has the class {name!r} more than once")
    if not names:
        raise DatasetError(f"{path} is empty; write the name of one class per line")
    return names


def find(path: Path) -> Iterator[str]:
    """The pictures in a folder and in those below it, by their paths from it, in order.

    What is hidden is left out; links are followed, but no folder is entered twice.
    """
    yield from _find(path, "", set())


def _find(path: Path, start: str, seen: set[str]) -> Iterator[str]:
    real = os.path.realpath(path)
    if real in seen:
        return
    seen.add(real)
    for entry in _entries(path):
        if _is_folder(entry):
            yield from _find(path / entry.name, f"{start}{entry.name}/", seen)
        elif entry.name.lower().endswith(SUFFIXES):
            yield f"{start}{entry.name}"


def _by_folder(path: Path, classes: Sequence[str]) -> Listing:
    folders = [entry.name for entry in _entries(path) if _is_folder(entry)]
    if not folders:
        raise DatasetError(f"{path} has {_without_classes(path)}")
    names = tuple(classes or folders)
    places = {name: place for place, name in enumerate(names)}
    files, labels = [], []
    for name in folders:
        if name not in places:
            raise DatasetError(f"the folder {path / name} is not one of the {len(names)} classes")
        members = [f"{name}/{file}" for file in find(path / name)]
        if not members:
            raise DatasetError(
                f"the class folder {path / name} has no pictures ({', '.join(SUFFIXES)}); add "
                "some, or remove it"
            )
        files += members
        labels += [places[name]] * len(members)
    return Listing(files, labels, names)


def _without_classes(path: Path) -> str:
    """What to say of a folder that has neither class folders nor a file of labels."""
    if next(find(path), None) is None:
        return f"no pictures ({', '.join(SUFFIXES)}), and no class folders"
    return (
        f"pictures, but neither class folders nor {LABELS}: put those of a class into a folder of "
        f"its name, or write {LABELS} with a line `file,label` for each"
    )


def _by_table(path: Path, table: Path, classes: Sequence[str]) -> Listing:
    rows = _rows(table)
    texts = {label for _, _, label in rows}
    numbered = all(re.fullmatch(r"-?[0-9]{1,9}", text) for text in texts)
    if classes:
        names = tuple(classes)
    elif numbered:
        names = tuple(map(str, range(min(max(map(int, texts)) + 1, MOST_CLASSES))))
    else:
        names = tuple(sorted(texts))
    places = {name: place for place, name in enumerate(names)}
    seen: dict[str, int] = {}
    for line, file, text in rows:
        by_number = int(text) if numbered and text not in places else -1
        label = places.get(text, by_number)
        if not 0 <= label < len(names):
            raise DatasetError(
                f"{table}, line {line}: the label {text!r} of {file} is not one of the "
                f"{len(names)} classes"
            )
        if file in seen:
            raise DatasetError(f"{table}, line {line}: {file} is listed more than once")
        if not (path / file).exists():
            raise DatasetError(f"{table}, line {line}: there is no picture {path / file}")
        seen[file] = label
    return Listing(list(seen), list(seen.values()), names)


def _rows(table: Path) -> list[tuple[int, str, str]]:
    """The lines of a file of labels, but for a header: number, file, label."""
    rows = [
        (line, [cell.strip() for cell in row])
        for line, row in enumerate(csv.reader(_text(table).splitlines()), start=1)
        if any(cell.strip() for cell in row)
    ]
    header = [cell.lower() for cell in rows[0][1]] if rows else []
    if not {*FILE_HEADERS, *LABEL_HEADERS}.isdisjoint(header):
        del rows[0]
    columns = _column(header, FILE_HEADERS, 0), _column(header, LABEL_HEADERS, 1)
    if not rows:
        raise DatasetError(f"{table} lists no picture; write a line `file,label` for each")
    for line, row in rows:
        if len(row) <= max(columns) or not all(row[column] for column in columns):
            raise DatasetError(f"{table}, line {line}: write `file,label`, not {','.join(row)!r}")
    return [(line, Path(row[columns[0]]).as_posix(), row[columns[1]]) for line, row in rows]


def _column(header: Sequence[str], names: Sequence[str], otherwise: int) -> int:
    return next((header.index(name) for name in names if name in header), otherwise)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} cannot be read ({error})") from error


def _entries(path: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder and is not hidden, by name."""
    try:
        with os.scandir(path) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise DatasetError(f"{path} cannot be read ({error.strerror})") from error
    return sorted(visible, key=lambda entry: entry.name)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads nowhere
        return False
