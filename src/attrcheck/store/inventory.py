"""What lies in a store: every entry with its key, read from the head of its file alone."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from attrcheck.store.encoding import SCHEMA, Key, read_head
from attrcheck.store.entries import SUFFIX

KINDS = ("records", "maps", "shared", "applies", "tuned", "keys", "results", "checks")
REPORT = "report"
"""The folder of a store in which the report of its last whole run is kept."""


@dataclass(frozen=True)
class Item:
    """One entry: its name, as in `maps/digits-resnet/lrp`, its key, its size and its age."""

    path: Path
    size: int
    name: str
    key: Key
    created: str

    @property
    def kind(self) -> str:
        """The first part of its name."""
        return self.name.partition("/")[0]


def entries(folder: Path) -> Iterator[Item]:
    """All entries of a store, in the order of their names; files that are not entries left out."""
    for path in files(folder):
        if (item := read_item(path)) is not None:
            yield item


def read_item(path: Path) -> Item | None:
    """The entry in a file; None if it holds none that this version could read."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        head = read_head(path)
        if head["schema"] == SCHEMA:
            created = str(head["facts"]["created"])
            return Item(path, path.stat().st_size, str(head["name"]), dict(head["key"]), created)
    return None


def history(folder: Path, pattern: str) -> dict[str, list[Item]]:
    """The entries whose names match a glob, by name, the newest first."""
    versions: dict[str, list[Item]] = {}
    for item in entries(folder):
        if fnmatch.fnmatchcase(item.name, pattern):
            versions.setdefault(item.name, []).append(item)
    return {
        name: sorted(items, key=lambda item: item.path.stat().st_mtime_ns, reverse=True)
        for name, items in versions.items()
    }


def changes(one: Key, other: Key) -> list[str]:
    """The parts in which two keys differ."""
    return sorted(part for part in {*one, *other} if one.get(part) != other.get(part))


def reports(folder: Path) -> list[Path]:
    """The files of the reports that a store keeps."""
    return [path for path in sorted((folder / REPORT).rglob("[!.]*")) if path.is_file()]


def leftovers(folder: Path) -> Iterator[Path]:
    """Files that are of no use: set aside, of another version, or of writers that were killed."""
    yield from (path for path in files(folder) if read_item(path) is None)
    yield from sorted((folder / "aside").glob("*"))
    yield from sorted(folder.glob("**/.*.tmp"))


def files(folder: Path) -> Iterator[Path]:
    """The places where entries are, whatever lies there, in order."""
    for kind in KINDS:
        yield from sorted((folder / kind).glob(f"*/*{SUFFIX}"))


def gaps(lacks: Mapping[str, Collection[int]]) -> str:
    """Which shards are missing of which methods, in words; or nothing."""
    for_all = set.intersection(*map(set, lacks.values())) if lacks else set()
    shown = [f"{_numbers(for_all)} of all methods"] if for_all else []
    for method, numbers in lacks.items():
        if rest := set(numbers) - for_all:
            shown.append(f"{_numbers(rest)} of {method}")
    return "; ".join(shown)


def _numbers(numbers: Collection[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))
