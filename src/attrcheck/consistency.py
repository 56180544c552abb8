"""Consistency: how far the rankings of cases agree, with each other and with the board."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attrcheck import metarank
from attrcheck.contracts import Case
from attrcheck.ranks import average_ranks, defined, spearman
from attrcheck.table import Table

Floats = NDArray[np.float64]

Level: TypeAlias = Literal["dataset", "model", "protocol", "checkpoint"]
Band: TypeAlias = Literal["strong", "moderate", "weak"]
LEVELS: tuple[Level, ...] = ("dataset", "model", "protocol", "checkpoint")
"""What differs between the two cases of a pair while all else is the same."""
WEAK, STRONG = 0.6, 0.8
"""Rank correlations below and above which two rankings agree weakly and strongly."""
LEAST_METHODS = 4
"""A rank correlation of fewer says nothing."""
DIGITS = 12
"""Correlations are rounded to these, so that 0.8 is on no side of itself."""
ROWS = 4096
"""Correlations computed at once."""


@dataclass(frozen=True)
class Agreement:
    """How two rankings agree that differ in one name only, or in the model's checkpoint.

    rank_correlation: None where too few methods have both.
    """

    level: Level
    one: str
    other: str
    rank_correlation: float | None
    band: Band | None


@dataclass(frozen=True)
class Agreements:
    """How many pairs of rankings there are, how many of each band, and their mean correlation."""

    pairs: int
    strong: int
    moderate: int
    weak: int
    undefined: int
    mean: float | None


@dataclass(frozen=True)
class Concordance:
    """Kendall's W over the methods that have a rank in all cases; `of` so many that have any.

    problem: why there is no W, where there is none.
    """

    w: float | None
    cases: int
    methods: int
    of: int
    problem: str


@dataclass(frozen=True)
class Move:
    """A method's places on the whole board and on another."""

    method: str
    from_: int
    to: int


@dataclass(frozen=True)
class Change:
    """From the whole board to the one without some cases.

    moved: who moves furthest, by its places among the methods that both boards have; of several,
    the first on the whole board. winner_changes: None where there is no other board.
    """

    rank_correlation: float | None
    moved: Move | None
    winners: list[str]
    winner_changes: bool | None


@dataclass(frozen=True)
class CaseAgreement(Change):
    """How a case agrees with the board, and with that of all other cases; the board without it."""

    case: str
    with_board: float | None
    with_others: float | None


@dataclass(frozen=True)
class WithoutProtocol(Change):
    """The board without the cases of a protocol."""

    protocol: str


@dataclass(frozen=True)
class Consistency:
    """All that is known of how the rankings agree.

    levels: of all pairs. protocols: of the pairs that each has a part in. cases: those most at odds
    with the board first; `cases` and `without_protocol` are empty without a board of all cases.
    pairs: those that have a correlation.
    """

    levels: dict[Level, Agreements]
    protocols: dict[str, dict[Level, Agreements]]
    concordance: Concordance
    cases: list[CaseAgreement]
    without_protocol: list[WithoutProtocol]
    pairs: list[Agreement]


def study(table: Table, checkpoints: Iterable[tuple[str, str, float]] = ()) -> Consistency:
    """All that is known of how the rankings agree.

    `checkpoints` are rank correlations from elsewhere, each with its case and what it was compared
    with.
    """
    along = [_agreement("checkpoint", *correlation) for correlation in checkpoints]
    pairs = [*pairwise(table), *along]
    cases, without_protocol = with_board(table)
    return Consistency(
        levels={level: summary(pair for pair in pairs if pair.level == level) for level in LEVELS},
        protocols=by_protocol(pairs),
        concordance=concordance(table.ranks),
        cases=cases,
        without_protocol=without_protocol,
        pairs=[pair for pair in pairs if pair.rank_correlation is not None],
    )


def correlations(one: Floats, other: Floats) -> Floats:
    """Spearman's correlation row by row, over the columns that both have; NaN if too few."""
    correlated = np.full(len(one), np.nan)
    common = np.isfinite(one) & np.isfinite(other)
    same_columns: dict[bytes, list[int]] = {}
    for row, mask in enumerate(common):
        same_columns.setdefault(mask.tobytes(), []).append(row)
    for alike in same_columns.values():
        mask = common[alike[0]]
        for start in range(0, len(alike) if mask.sum() >= LEAST_METHODS else 0, ROWS):
            rows = alike[start : start + ROWS]
            correlated[rows] = spearman(one[rows][:, mask], other[rows][:, mask])
    return correlated.round(DIGITS)


def band(correlation: float) -> Band:
    """`strong` above 0.8, `weak` below 0.6, else `moderate`."""
    return "strong" if correlation > STRONG else "weak" if correlation < WEAK else "moderate"


def pairwise(table: Table) -> list[Agreement]:
    """The rank correlation of every two cases that differ in one name only, with its level."""
    differing = sorted(_differing(table.cases))
    agreements = []
    for start in range(0, len(differing), ROWS):
        block = differing[start : start + ROWS]
        first, second = ([pair[place] for pair in block] for place in (0, 1))
        values = correlations(table.ranks[first], table.ranks[second])
        agreements += [
            _agreement(LEVELS[level], table.cases[i].id, table.cases[j].id, value)
            for (i, j, level), value in zip(block, values, strict=True)
        ]
    return agreements


def _differing(cases: Sequence[Case]) -> Iterator[tuple[int, int, int]]:
    """Indices i < j of cases that differ in one name only, and the index of its level."""
    names = [case.names for case in cases]
    for level in range(len(LEVELS) - 1):
        alike: dict[tuple[str, ...], list[int]] = {}
        for index, own in enumerate(names):
            alike.setdefault((*own[:level], *own[level + 1 :]), []).append(index)
        for indices in alike.values():
            for i, j in combinations(indices, 2):
                if names[i] != names[j]:
                    yield i, j, level


def summary(agreements: Iterable[Agreement]) -> Agreements:
    """How many there are, how many of each band, how many have no correlation; the mean."""
    pairs = list(agreements)
    known = [pair.rank_correlation for pair in pairs if pair.rank_correlation is not None]
    bands = Counter(pair.band for pair in pairs)
    return Agreements(
        pairs=len(pairs),
        strong=bands["strong"],
        moderate=bands["moderate"],
        weak=bands["weak"],
        undefined=len(pairs) - len(known),
        mean=float(np.mean(known)) if known else None,
    )


def by_protocol(pairs: Iterable[Agreement]) -> dict[str, dict[Level, Agreements]]:
    """For each protocol, the pairs that it has a part in, by level."""
    parts: dict[str, dict[Level, list[Agreement]]] = {}
    protocol_of = cache(lambda case: Case.of(case).protocol)
    for pair in pairs:
        for case in (pair.one, pair.other) if pair.level == "protocol" else (pair.one,):
            levels = parts.setdefault(protocol_of(case), {level: [] for level in LEVELS})
            levels[pair.level].append(pair)
    return {
        protocol: {level: summary(chosen) for level, chosen in levels.items()}
        for protocol, levels in sorted(parts.items())
    }


def concordance(ranks: Floats) -> Concordance:
    """Kendall's W of the cases that rank anything, 0 (no agreement) to 1 (all rank alike).

    W = |sum of r_c|^2 / (n * sum of |r_c|^2), where r_c are the ranks of case c less their mean;
    this is the usual form, corrected for ties. Over methods that have a rank in all n cases.
    """
    there = np.isfinite(ranks)
    ranks, there = ranks[there.any(axis=1)], there[there.any(axis=1)]
    complete = there.all(axis=0)
    size = int(complete.sum()) if len(ranks) else 0

    def of(w: float | None, problem: str = "") -> Concordance:
        return Concordance(w, len(ranks), size, int(there.any(axis=0).sum()), problem)

    if len(ranks) < 2:
        return of(None, "it takes two cases to agree")
    if size < LEAST_METHODS:
        why = f"fewer than {LEAST_METHODS} methods have a score in all {len(ranks)} cases"
        return of(None, why)
    centred = average_ranks(ranks[:, complete]) - (size + 1) / 2
    total = len(ranks) * float((centred**2).sum())
    if not total:
        return of(None, "all methods tie in every case")
    w = float((centred.sum(axis=0) ** 2).sum()) / total
    return of(round(w, DIGITS))


def with_board(table: Table) -> tuple[list[CaseAgreement], list[WithoutProtocol]]:
    """How each case agrees with the board, and what the board is without it or its protocol.

    A case has a vote on the board that it is compared with, but none in `with_others`.
    """
    whole = table.board() if len(table.cases) else np.full(len(table.methods), np.nan)
    if not np.isfinite(whole).any():
        return [], []
    ids, protocols = (
        np.array([getattr(case, name) for case in table.cases]) for name in ("id", "protocol")
    )
    names = np.unique(protocols)
    others = np.array([table.board([i]) for i in range(len(ids))])
    rest = np.array([table.board(np.flatnonzero(protocols == name)) for name in names])
    cases = [
        CaseAgreement(
            **vars(change),
            case=str(name),
            with_board=defined(with_all),
            with_others=defined(with_others),
        )
        for name, with_all, with_others, change in zip(
            ids,
            correlations(table.ranks, np.broadcast_to(whole, others.shape)),
            correlations(table.ranks, others),
            _changes(table.methods, whole, others),
            strict=True,
        )
    ]
    # The unknown comes behind all that is known.
    cases.sort(key=lambda case: (case.with_board is None, case.with_board or 0.0, case.case))
    changes = _changes(table.methods, whole, rest)
    return cases, [
        WithoutProtocol(**vars(change), protocol=str(name))
        for name, change in zip(names, changes, strict=True)
    ]


def _changes(methods: Sequence[str], whole: Floats, boards: Floats) -> list[Change]:
    """From the whole board to each of those without some cases."""
    changes = []
    winners = _winners(methods, whole)
    for board, value in zip(
        boards, correlations(np.broadcast_to(whole, boards.shape), boards), strict=True
    ):
        left = np.isfinite(board)
        names = [name for name, stays in zip(methods, left, strict=True) if stays]
        steps = zip(metarank.places(-whole[left]), names, board[left], strict=True)
        ordered = sorted((-abs(to - at), at, name, to) for at, name, to in steps)
        moves = [Move(name, int(at), int(to)) for far, at, name, to in ordered if far]
        leaders = _winners(methods, board)
        changed = leaders != winners if names else None
        changes.append(Change(defined(value), moves[0] if moves else None, leaders, changed))
    return changes


def _winners(methods: Sequence[str], board: Floats) -> list[str]:
    return sorted(name for name, place in zip(methods, board, strict=True) if place == 1)


def _agreement(level: Level, one: str, other: str, value: float) -> Agreement:
    known = defined(round(value, DIGITS))
    return Agreement(level, one, other, known, None if known is None else band(known))
