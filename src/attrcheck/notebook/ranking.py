"""`attrcheck.rank` and `fuse`: scores become ranks, and the ranks of many cases one board."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from tabulate import tabulate

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.metarank import case_ranks
from attrcheck.notebook import charts
from attrcheck.notebook.inputs import NAME, InputError
from attrcheck.notebook.scoring import Score
from attrcheck.report.document import Ranking
from attrcheck.report.text import for_terminal
from attrcheck.report.types import BoardEntry
from attrcheck.tallies import TOLERANCE

Scores: TypeAlias = Mapping[str, Score | float]
"""Of the methods of one case, by name."""


@dataclass(frozen=True)
class Ranks(Mapping[str, float]):
    """The ranks of the methods of one case, best first: 1 the best, NaN without a score."""

    ranks: dict[str, float]
    scores: dict[str, Score | float] = field(repr=False)

    def __getitem__(self, method: str) -> float:
        return self.ranks[method]

    def __iter__(self) -> Iterator[str]:
        return iter(self.ranks)

    def __len__(self) -> int:
        return len(self.ranks)

    def __repr__(self) -> str:
        return str(tabulate(self._rows(), ["rank", "method", "score"], disable_numparse=True))

    def _repr_html_(self) -> str:
        return charts.table(["rank", "method", "score"], self._rows())

    def _rows(self) -> list[list[str]]:
        return [
            [f"{rank:g}", for_terminal(name), _text(self.scores[name])]
            for name, rank in self.ranks.items()
        ]


@dataclass(frozen=True)
class Board:
    """The leaderboard of some cases, best first, as `entries`; see the docs for its figures."""

    entries: list[BoardEntry]

    def __iter__(self) -> Iterator[BoardEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __getitem__(self, method: str) -> BoardEntry:
        for entry in self.entries:
            if entry.method == method:
                return entry
        raise KeyError(method)

    def __repr__(self) -> str:
        return str(tabulate(self._rows(), HEADERS, disable_numparse=True))

    def _repr_html_(self) -> str:
        drawn = charts.bars(self.entries)
        rows = [[*row, bar] for row, bar in zip(self._rows(), drawn, strict=True)]
        return charts.table([*HEADERS, ""], rows)

    def _rows(self) -> list[list[str]]:
        return [
            [
                str(entry.rank),
                for_terminal(entry.method),
                f"{entry.meta_rank:+.2f}",
                "" if entry.low is None else f"{entry.low:+.2f} to {entry.high:+.2f}",
                f"{entry.mean_rank:.1f}",
                "" if entry.wins is None else f"{entry.wins:.0%}",
            ]
            for entry in self.entries
        ]


HEADERS = ["", "method", "Meta-Rank", "95% interval", "mean rank", "wins"]


def rank(scores: Scores, *, higher_is_better: bool = True) -> Ranks:
    """Rank the methods of one case: 1 the best, ties share the mean.

    scores: by method, as `score` returns them, or plain numbers, for which `higher_is_better`
    counts. Scores are first settled among all, where the protocol asks for that.

    >>> rank({"a": 0.2, "b": 0.9, "c": 0.2}).ranks
    {'b': 1.0, 'a': 2.5, 'c': 2.5}
    """
    settled, higher = _settled(scores, "these scores", higher_is_better)
    values = [_number(one) for one in settled.values()]
    ranks = case_ranks(values, higher_is_better=higher, tolerance=TOLERANCE).tolist()
    ranked = dict(zip(settled, ranks, strict=True))
    best = sorted(ranked, key=lambda name: (math.isnan(ranked[name]), ranked[name]))
    return Ranks({name: ranked[name] for name in best}, settled)


def fuse(
    cases: Mapping[str, Scores],
    *,
    higher_is_better: bool | Mapping[str, bool] = True,
    seed: int = 0,
) -> Board:
    """The board of some cases, as of a run: Meta-Ranks, with intervals where scores have them.

    cases: for each, by any name, the scores of its methods, as `rank` takes them. Cases of one pair
    share their images, so they are resampled together. `metarank.fuse` does the same on arrays.
    """
    results = []
    for case, scores in cases.items():
        plain = higher_is_better if isinstance(higher_is_better, bool) else higher_is_better[case]
        settled, higher = _settled(scores, f"case {case!r}", plain)
        results.append(_result(case, settled, higher))
    if not results:
        raise InputError("there is no case to fuse")
    methods = list(dict.fromkeys(name for scores in cases.values() for name in scores))
    absent = Outcome("not_applicable", "not scored")
    complete = [
        CaseResult(
            **{
                **vars(result),
                "outcomes": {name: result.outcomes.get(name, absent) for name in methods},
            }
        )
        for result in results
    ]
    return Board(Ranking([condense(result) for result in complete], methods, seed).leaderboard())


def _settled(scores: Scores, where: str, plain: bool) -> tuple[dict[str, Score | float], bool]:
    """Scores that may be compared, and whether higher ones are better."""
    known = {name: one for name, one in scores.items() if isinstance(one, Score)}
    if not scores:
        raise InputError(f"{where}: there are no scores")
    if not known:
        return {name: float(one) for name, one in scores.items()}, plain
    if len(known) < len(scores):
        other = next(name for name in scores if name not in known)
        raise InputError(f"{where}: {other!r} is a plain number among scores with intervals")
    sources = {
        (one.protocol, one.pair, len(next(iter(one.rows.values())))) for one in known.values()
    }
    if len(sources) > 1:
        told = " and ".join(f"{p} on {n} images of {pair}" for p, pair, n in sorted(sources))
        raise InputError(f"{where}: they are not of one case, but by {told}")
    first = next(iter(known.values()))
    protocol = first.settings.settle([one.rows for one in known.values()])
    return {name: one.under(protocol) for name, one in known.items()}, protocol.higher_is_better


def _result(case: str, scores: Mapping[str, Score | float], higher: bool) -> CaseResult:
    """A case as the engine sends it."""
    outcomes, pair, images = {}, NAME, 0
    for name, one in scores.items():
        if isinstance(one, Score):
            outcomes[name], pair, images = one.outcome, one.pair, len(next(iter(one.rows.values())))
        elif math.isfinite(one):
            outcomes[name] = Outcome("ok", score=one)
        else:
            outcomes[name] = Outcome("undefined", "not a number")
    return CaseResult(f"{pair}-{case.replace('-', '_')}", higher, images, math.nan, outcomes)


def _number(score: Score | float) -> float:
    return float(score)


def _text(score: Score | float) -> str:
    return score.text if isinstance(score, Score) else f"{score:.4g}"
