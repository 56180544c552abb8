"""Entries on their way to another process: the bytes of their files, checked where they arrive."""

from __future__ import annotations

import glob
from collections.abc import Iterator
from pathlib import Path

from attrcheck.store.encoding import fingerprint, parse_entry
from attrcheck.store.entries import SUFFIX, Store
from attrcheck.store.files import write_whole
from attrcheck.store.inventory import files

FINGERPRINT = "[0-9a-f]" * 16


def put(store: Store, content: bytes) -> None:
    """Write an entry that another process has made; ValueError if it is damaged."""
    head, _ = parse_entry(content)
    path = store.path(head["name"], head["key"])
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
    store.keeper.wrote(path, len(content))


def contents(store: Store, *kinds: str) -> Iterator[bytes]:
    """The entries of these kinds in a small store."""
    for path in files(store.folder):
        if path.relative_to(store.folder).parts[0] in kinds:
            yield path.read_bytes()


def named(store: Store, name: str) -> list[Path]:
    """The files of all entries of a name, whatever their keys."""
    path = store.path(name, {})
    start = glob.escape(path.stem.removesuffix(fingerprint({})))
    return sorted(path.parent.glob(f"{start}{FINGERPRINT}{SUFFIX}"))
