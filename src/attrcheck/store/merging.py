"""Join stores: every entry is read and verified, then linked or copied; conflicts are refused.

Nothing is written before all is read, and every file appears whole under its name. So a merge that
was killed leaves a store that is valid, and the next one goes on from there.
"""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from attrcheck.errors import AttrcheckError
from attrcheck.store.comparing import facts_differ
from attrcheck.store.encoding import Entry, read_entry
from attrcheck.store.entries import Store
from attrcheck.store.files import is_file, whole
from attrcheck.store.inventory import files, gaps

MOST_NAMED = 20
"""Conflicts that an error names."""


class MergeError(AttrcheckError):
    """Stores that cannot be joined; the message says which files are in the way."""


@dataclass
class Merged:
    """What became of a merge: entries by how they came in, and what was left out.

    equal: entries that were there already, or in several stores alike. damaged: files in the place
    of entries, each with what is wrong with it. missing: shards that no store has, though others of
    the same case are there.
    """

    linked: int = 0
    copied: int = 0
    equal: int = 0
    damaged: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def merge(sources: Sequence[Path], into: Path) -> Merged:
    """Put the entries of all stores into one, which is made if there is none."""
    for folder in sources:
        if not folder.is_dir():
            raise MergeError(f"there is no store at {folder}")
    Store(into).open()
    merged = Merged()
    chosen = _choose(sources, into, merged)
    for place, path in chosen.items():
        if _bring(path, into / place):
            merged.linked += 1
        else:
            merged.copied += 1
    merged.missing = missing(into)
    return merged


def _choose(sources: Sequence[Path], into: Path, merged: Merged) -> dict[Path, Path]:
    """The file of every entry that the store lacks; an error if two stores do not agree."""
    chosen: dict[Path, Path] = {}
    conflicts: list[str] = []
    for folder in sources:
        if folder.samefile(into):
            continue
        for path in files(folder):
            place = path.relative_to(folder)
            there = into / place
            if there.exists() and there.samefile(path):
                merged.equal += 1
            elif (entry := _read(path, folder, merged)) is not None:
                rival = chosen.get(place, there)
                other = _read(rival, rival.parents[2], merged) if rival.exists() else None
                if other is None:
                    chosen[place] = path
                elif difference := _differ(other, entry):
                    conflicts.append(f"{path} is not {rival}: {difference}")
                else:
                    merged.equal += 1
    if conflicts:
        more = f"; and {len(conflicts) - MOST_NAMED} more" if len(conflicts) > MOST_NAMED else ""
        raise MergeError(
            "nothing was merged, as entries of one key have different contents: "
            f"{'; '.join(conflicts[:MOST_NAMED])}{more}. Remove those that are wrong"
        )
    return chosen


def _read(path: Path, folder: Path, merged: Merged) -> Entry | None:
    """The entry in a file; None if there is none, which is noted."""
    try:
        if not is_file(path):
            raise ValueError("not a plain file")
        head, entry = read_entry(path)
        if Store(folder).path(head["name"], head["key"]) != path:
            raise ValueError("not an entry of this name and key")
        return entry
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        told = f"{path}: {error}"
        if told not in merged.damaged:
            merged.damaged.append(told)
        return None


def _differ(one: Entry, other: Entry) -> str:
    """How two entries differ, in words, the time that they took aside; or nothing."""
    if one.arrays.keys() != other.arrays.keys():
        return f"it has {sorted(other.arrays)}, not {sorted(one.arrays)}"
    for name, array in one.arrays.items():
        rival = other.arrays[name]
        if array.dtype != rival.dtype or array.shape != rival.shape:
            return f"{name} is of another type or shape"
        if array.tobytes() != rival.tobytes():
            return f"{int(np.sum(array != rival))} of {array.size} values of {name} differ"
    return facts_differ(one.info, other.info)


def _bring(path: Path, to: Path) -> bool:
    """Link a file to a place, or copy it where that cannot be done; whether it was linked."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with whole(to) as temporary:
        try:
            os.link(path, temporary)
        except OSError:  # another file system, or one that has no links
            shutil.copyfile(path, temporary)
            return False
    return True


def missing(folder: Path) -> list[str]:
    """Shards of which records are missing while others of the case are there, a line for each case.

    Numbers tell, so the last shards of a case are not missed here; the next run names them.
    """
    numbers: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path in files(folder):
        kind, case = path.relative_to(folder).parts[:2]
        if kind == "records":
            method, _, number = path.stem.rpartition("-")[0].partition("@")
            numbers[case][method].add(int(number) if number.isdecimal() else 0)
    lines = []
    for case, methods in numbers.items():
        every = range(1 + max(max(known) for known in methods.values()))
        lacks = {method: {*every} - known for method, known in methods.items()}
        if words := gaps(lacks):
            lines.append(f"{case}: {words}")
    return lines
