"""Which methods share a place, and the boards of families of protocols, as people read them."""

from __future__ import annotations

import itertools

from attrcheck.report.text import Table
from attrcheck.report.types import BoardEntry, Document, FamilyBoard
from attrcheck.report.weighing import SAID
from attrcheck.separation import LETTERS

FEW_PAIRS = 5
"""With fewer, Student's t is so wide that hardly anything is told apart."""
MOST_FIRST = 3
FAMILIES = "The boards of families of protocols"


def short(letters: str) -> str:
    """Letters in little room, three and more in a row as a range.

    >>> short("abcdfg")
    'a-d,f,g'
    """
    runs: list[list[int]] = []
    for place in map(LETTERS.index, letters):
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    parts = [
        [f"{LETTERS[run[0]]}-{LETTERS[run[-1]]}"] if len(run) > 2 else [LETTERS[at] for at in run]
        for run in runs
    ]
    return ",".join(itertools.chain.from_iterable(parts))


def places(entry: BoardEntry) -> str:
    """The places that a method may have, e.g. `3-8`."""
    if entry.best is None or entry.worst is None:
        return "-"
    return str(entry.best) if entry.best == entry.worst else f"{entry.best}-{entry.worst}"


def legend(document: Document) -> list[str]:
    """What the letters mean, and how far they reach; nothing where there are none."""
    pairs = document.separation.pairs
    if not any(entry.letters for entry in document.leaderboard):
        return []
    line = (
        "group: methods that share a letter are not told apart (95%, corrected for all pairs of "
        "methods, paired by resample"
    )
    if pairs == 1:
        return [f"{line}; of one dataset x model, for other images alone)"]
    few = "; few as these are, they tell little apart" if pairs < FEW_PAIRS else ""
    return [f"{line} of {pairs} dataset x model pairs and their images{few})"]


def weights(document: Document) -> list[str]:
    """What weighs alike, unless that is every case."""
    scheme = document.settings.weights
    return [] if scheme == "equal" else [f"weights ({scheme}): {SAID[scheme]}"]


def firsts(document: Document) -> list[str]:
    """Who is first in each family of protocols, in one line; nothing where there is but one."""
    told = [f"{board.family} {', '.join(_winners(board))}" for board in document.families]
    return [f"first by family of protocols: {'; '.join(told)}"] if told else []


def families(document: Document) -> list[Table]:
    """The board, and beside it the place and Meta-Rank of each method in each family."""
    boards = document.families
    if not boards:
        return []
    rows = [
        [entry.method, f"{entry.rank} ({entry.meta_rank:+.2f})"]
        + [_place(board, entry.method) for board in boards]
        for entry in document.leaderboard
    ]
    protocols = "; ".join(
        f"{board.family}: {', '.join(board.protocols)} in {board.cases} cases"
        + (f" ({board.problem})" if board.problem else "")
        for board in boards
    )
    note = (
        "Place and Meta-Rank over the cases of each family, without intervals: protocols of one "
        f"family are siblings, and on the whole board each of them counts. {protocols}."
    )
    headers = ["method", "whole board", *(board.family for board in boards)]
    return [Table(FAMILIES, headers, rows, note)]


def _place(board: FamilyBoard, method: str) -> str:
    if method not in board.places:
        return "-"
    place, meta_rank = board.places[method]
    return f"{place:g} ({meta_rank:+.2f})"


def _winners(board: FamilyBoard) -> list[str]:
    names = [name for name, (place, _) in board.places.items() if place == 1]
    more = ["..."] if len(names) > MOST_FIRST else []
    return [*names[:MOST_FIRST], *more] or ["nobody"]
