"""Entries as bytes: named arrays, a head that says what they are, and a digest of both."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load, save

from attrcheck.store.digests import digest

SCHEMA = 3
MOST_HEAD = 2**24
"""Bytes that the head of an entry may have; what claims more is not an entry."""

Key: TypeAlias = Mapping[str, str]
"""All that an entry depends on, by name: short hashes and plain values."""


@dataclass(frozen=True)
class Entry:
    """One file: named arrays, and a few facts about them that fit into JSON."""

    arrays: dict[str, NDArray[np.generic]]
    info: dict[str, Any] = field(default_factory=dict)
    origin: Origin | None = None


@dataclass(frozen=True)
class Origin:
    """Where an entry comes from: the hash of its key, whether an earlier run made it, and when."""

    fingerprint: str
    stored: bool
    created: str
    versions: dict[str, str]


def made_now(key: Key) -> Origin:
    """The origin of what this run computes."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return Origin(fingerprint(key), False, now, _versions())


@functools.cache
def _versions() -> dict[str, str]:
    """What computed an entry; for people, since its key has what matters."""
    return {name: version(name) for name in ("attrcheck", "torch", "numpy")}


def fingerprint(key: Key) -> str:
    """Sixteen hex digits of a key, whatever the order of its parts."""
    return _fingerprint(tuple(sorted(key.items())))


@functools.lru_cache(maxsize=4096)
def _fingerprint(parts: tuple[tuple[str, str], ...]) -> str:
    return digest(*parts)


def encode(entry: Entry, name: str, key: Key, run: str) -> bytes:
    """The file of an entry, as a run writes it."""
    origin = entry.origin or made_now(key)
    facts = {"info": entry.info, "created": origin.created, "versions": origin.versions}
    head = {
        "schema": SCHEMA,
        "name": name,
        "key": dict(key),
        "run": run,
        "digest": _digest(entry.arrays, facts),
        "facts": facts,
    }
    # In C order, and as they are: `ascontiguousarray` gives a single number an axis.
    arrays = {name: np.require(array, requirements="C") for name, array in entry.arrays.items()}
    return save(arrays, {"attrcheck": json.dumps(head, allow_nan=False)})


def start_of(path: Path) -> bytes:
    """The head of a file, as far as it may be one."""
    with path.open("rb") as file:
        size = file.read(8)
        return size + file.read(min(MOST_HEAD, int.from_bytes(size, "little")))


def read_head(path: Path) -> dict[str, Any]:
    """What an entry says of itself, without its arrays; ValueError if it is none."""
    return parse_head(start_of(path))


def parse_head(raw: bytes) -> dict[str, Any]:
    """What an entry says of itself, from the first bytes of its file; ValueError if it is none."""
    size = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or size > min(MOST_HEAD, len(raw) - 8):
        raise ValueError("not a safetensors file")
    try:
        return dict(json.loads(json.loads(raw[8 : 8 + size])["__metadata__"]["attrcheck"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError("not an entry of attrcheck") from error


def read_entry(path: Path) -> tuple[dict[str, Any], Entry]:
    """The head of an entry and all of it; ValueError if it is damaged, or not an entry."""
    return parse_entry(path.read_bytes())


def parse_entry(content: bytes) -> tuple[dict[str, Any], Entry]:
    """The entry in the bytes of a file; ValueError likewise."""
    head = parse_head(content)
    if head.get("schema") != SCHEMA:
        raise ValueError("of another version of attrcheck")
    try:
        return head, verified(content, head)
    except Exception as error:  # whatever a crafted or damaged file makes of its readers
        raise ValueError(str(error) or type(error).__name__) from error


def verified(content: bytes, head: Mapping[str, Any], run: str = "") -> Entry:
    """The entry in a file with this head, as a run sees it; ValueError if it is damaged."""
    arrays, facts = dict(sorted(load(content).items())), head["facts"]
    if head.get("digest") != _digest(arrays, facts):
        raise ValueError("damaged: its contents do not match its digest")
    stored = not run or head.get("run") != run
    origin = Origin(fingerprint(head["key"]), stored, facts["created"], dict(facts["versions"]))
    return Entry(arrays, dict(facts["info"]), origin)


def _digest(arrays: dict[str, NDArray[np.generic]], facts: Any) -> str:
    """Of all arrays, bit by bit, and of the facts about them, as JSON gives them back."""
    return digest(json.dumps(facts, sort_keys=True), *sorted(arrays.items()))
