"""Consistency: how far the rankings of cases agree, with each other and with the board."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attrcheck import metarank
from attrcheck.contracts import Case
from attrcheck.ranks import average_ranks, spearman

Floats = NDArray[np.float64]

LEVELS = ("dataset", "model", "protocol", "checkpoint")
"""What differs between the two cases of a pair while all else is the same."""
BANDS = ("strong", "moderate", "weak")
WEAK, STRONG = 0.6, 0.8
"""Rank correlations below and above which two rankings agree weakly and strongly."""
LEAST_METHODS = 4
"""A rank correlation of fewer says nothing."""
DIGITS = 12
"""Correlations are rounded to these, so that 0.8 is on no side of itself."""


@dataclass(frozen=True)
class Table:
    """The scores of a run, [cases, methods] with NaN where absent, and what follows from them."""

    cases: Sequence[Case]
    methods: Sequence[str]
    scores: Floats
    higher_is_better: NDArray[np.bool_]
    tolerance: float = 0.0

    @cached_property
    def ranks(self) -> Floats:
        """[cases, methods], 1 is best, NaN where a method has no score."""
        rows = [
            metarank.case_ranks(row, higher_is_better=bool(up), tolerance=self.tolerance)
            for row, up in zip(self.scores, self.higher_is_better, strict=True)
        ]
        return np.array(rows, dtype=np.float64).reshape(self.scores.shape)

    def board(self, keep: NDArray[np.bool_] | None = None) -> Floats:
        """Places on the board of the cases kept, [methods]; NaN where they give a method none.

        All are NaN where no chain of cases links the methods.
        """
        kept = np.ones(len(self.cases), dtype=bool) if keep is None else keep
        scores = self.scores[kept]
        there = np.flatnonzero(np.isfinite(scores).any(axis=0))
        found = np.full(len(self.methods), np.nan)
        with suppress(metarank.DisconnectedError):
            if len(there):
                fused = metarank.fuse(
                    scores[:, there],
                    higher_is_better=self.higher_is_better[kept],
                    tolerance=self.tolerance,
                )
                found[there] = places(fused.kappa)
        return found


def study(table: Table, checkpoints: Iterable[tuple[str, str, float]] = ()) -> dict[str, Any]:
    """All that is known of how the rankings agree, as plain data.

    `checkpoints` are rank correlations found elsewhere, each with its case and what it was
    compared with. Without a common board of all cases, `cases` and the boards without some of
    them are empty.
    """
    pairs = [*pairwise(table), *(_pair("checkpoint", *found) for found in checkpoints)]
    return {
        "levels": {level: summary(p for p in pairs if p["level"] == level) for level in LEVELS},
        "protocols": by_protocol(pairs),
        "concordance": concordance(table.ranks),
        **with_board(table),
        "pairs": [pair for pair in pairs if pair["rank_correlation"] is not None],
    }


def places(kappa: Floats) -> Floats:
    """Places on a scale, 1 the highest; what differs by rounding alone shares one."""
    above = kappa > kappa[:, None] + metarank.ROUNDING
    return np.asarray(1.0 + above.sum(axis=1), dtype=np.float64)


def correlations(one: Floats, other: Floats) -> Floats:
    """Spearman's correlation row by row, over the columns that both have; NaN if too few."""
    found = np.full(len(one), np.nan)
    common = np.isfinite(one) & np.isfinite(other)
    alike: dict[bytes, list[int]] = {}
    for row, mask in enumerate(common):
        alike.setdefault(mask.tobytes(), []).append(row)
    for rows in alike.values():
        mask = common[rows[0]]
        if mask.sum() >= LEAST_METHODS:
            found[rows] = spearman(one[rows][:, mask], other[rows][:, mask])
    return found.round(DIGITS)


def band(correlation: float) -> str:
    """`strong` above 0.8, `weak` below 0.6, else `moderate`."""
    return "strong" if correlation > STRONG else "weak" if correlation < WEAK else "moderate"


def pairwise(table: Table) -> list[dict[str, Any]]:
    """The rank correlation of every two cases that differ in one name only, with its level."""
    levels, indices = [], []
    for (i, one), (j, other) in combinations(enumerate(table.cases), 2):
        differ = [a != b for a, b in zip(one.names, other.names, strict=True)]
        if sum(differ) == 1:
            levels.append(LEVELS[differ.index(True)])
            indices.append((i, j))
    first, second = np.array(indices, dtype=int).reshape(-1, 2).T
    found = correlations(table.ranks[first], table.ranks[second])
    return [
        _pair(level, table.cases[i].id, table.cases[j].id, value)
        for level, i, j, value in zip(levels, first, second, found, strict=True)
    ]


def summary(pairs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """How many pairs there are, how many of each band, how many have no correlation; the mean."""
    every = list(pairs)
    known = [pair["rank_correlation"] for pair in every if pair["rank_correlation"] is not None]
    return {
        "pairs": len(every),
        **{name: sum(pair["band"] == name for pair in every) for name in BANDS},
        "undefined": len(every) - len(known),
        "mean": float(np.mean(known)) if known else None,
    }


def by_protocol(pairs: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """For each protocol, the pairs that it has a part in, by level."""
    sorted_out: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for pair in pairs:
        ids = (pair["one"], pair["other"]) if pair["level"] == "protocol" else (pair["one"],)
        for name in ids:
            levels = sorted_out.setdefault(Case.of(name).protocol, {level: [] for level in LEVELS})
            levels[pair["level"]].append(pair)
    return {
        protocol: {level: summary(own) for level, own in levels.items()}
        for protocol, levels in sorted(sorted_out.items())
    }


def concordance(ranks: Floats) -> dict[str, Any]:
    """Kendall's W of the cases that rank anything, 0 (no agreement) to 1 (all rank alike).

    W = |sum of r_c|^2 / (n * sum of |r_c|^2), where r_c are the ranks of case c less their mean;
    this is the usual form, corrected for ties. Over methods that have a rank in all n cases.
    """
    there = np.isfinite(ranks)
    ranks, there = ranks[there.any(axis=1)], there[there.any(axis=1)]
    complete = there.all(axis=0)
    size = int(complete.sum()) if len(ranks) else 0
    facts = {"w": None, "cases": len(ranks), "methods": size, "of": int(there.any(axis=0).sum())}
    if len(ranks) < 2:
        return {**facts, "problem": "it takes two cases to agree"}
    if size < LEAST_METHODS:
        why = f"fewer than {LEAST_METHODS} methods have a score in all {len(ranks)} cases"
        return {**facts, "problem": why}
    centred = average_ranks(ranks[:, complete]) - (size + 1) / 2
    total = len(ranks) * float((centred**2).sum())
    if not total:
        return {**facts, "problem": "all methods tie in every case"}
    w = float((centred.sum(axis=0) ** 2).sum()) / total
    return {**facts, "w": round(w, DIGITS), "problem": ""}


def with_board(table: Table) -> dict[str, list[dict[str, Any]]]:
    """How each case agrees with the board, and what the board is without it or its protocol.

    A case has a vote on the board that it is compared with, but none in `with_others`.
    """
    whole = table.board()
    if not np.isfinite(whole).any():
        return {"cases": [], "without_protocol": []}
    ids, judges = (
        np.array([getattr(case, name) for case in table.cases]) for name in ("id", "protocol")
    )
    others = np.array([table.board(ids != name) for name in ids])
    rest = np.array([table.board(judges != name) for name in np.unique(judges)])
    cases = [
        {"case": str(name), "with_board": _number(own), "with_others": _number(other), **change}
        for name, own, other, change in zip(
            ids,
            correlations(table.ranks, np.broadcast_to(whole, others.shape)),
            correlations(table.ranks, others),
            _changes(table.methods, whole, others),
            strict=True,
        )
    ]
    cases.sort(key=lambda entry: (_last(entry["with_board"]), entry["case"]))
    protocols = [
        {"protocol": str(name), **change}
        for name, change in zip(
            np.unique(judges), _changes(table.methods, whole, rest), strict=True
        )
    ]
    return {"cases": cases, "without_protocol": protocols}


def _changes(methods: Sequence[str], whole: Floats, boards: Floats) -> list[dict[str, Any]]:
    """From the whole board to each of those without some cases.

    `moved` is who moves furthest, and its places among the methods that both boards have; of
    several, the first on the whole board. Nothing is known of what is no board.
    """
    found = []
    winners = _winners(methods, whole)
    for board, value in zip(
        boards, correlations(np.broadcast_to(whole, boards.shape), boards), strict=True
    ):
        left = np.isfinite(board)
        names = [name for name, stays in zip(methods, left, strict=True) if stays]
        steps = zip(places(-whole[left]), names, board[left], strict=True)
        ordered = sorted((-abs(to - at), at, name, to) for at, name, to in steps)
        move = [{"method": m, "from": int(at), "to": int(to)} for far, at, m, to in ordered if far]
        change = {
            "rank_correlation": _number(value),
            "moved": move[0] if move else None,
            "winners": _winners(methods, board),
            "winner_changes": _winners(methods, board) != winners if names else None,
        }
        found.append(change)
    return found


def _winners(methods: Sequence[str], board: Floats) -> list[str]:
    return sorted(name for name, place in zip(methods, board, strict=True) if place == 1)


def _pair(level: str, one: str, other: str, value: float) -> dict[str, Any]:
    known = _number(round(value, DIGITS))
    return {
        "level": level,
        "one": one,
        "other": other,
        "rank_correlation": known,
        "band": None if known is None else band(known),
    }


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _last(value: float | None) -> float:
    """A key that sorts the unknown behind all that is known."""
    return np.inf if value is None else value
