"""The report: `report.json` holds it, every renderer shows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attrcheck import consistency, metarank
from attrcheck.contracts import Case
from attrcheck.engine.results import CaseResult, CheckResult, LawResult, Outcome, Score, join
from attrcheck.report import verdicts
from attrcheck.report.types import (
    BoardEntry,
    CaseEntry,
    Counts,
    Document,
    Pairwise,
    Run,
    ScoreEntry,
    SettingsShown,
)
from attrcheck.store.seeds import derive
from attrcheck.tallies import TOLERANCE

SCHEMA = 2


def build(
    results: Sequence[CaseResult],
    checks: Sequence[CheckResult],
    settings: SettingsShown,
    missing: Sequence[str],
    run: Run,
    laws: Sequence[LawResult] = (),
) -> Document:
    """Fuse the cases and lay out all that is known; `run` takes everything that is volatile."""
    ranking = Ranking(results, settings.methods, settings.seed)
    try:
        leaderboard, pairwise, problem = ranking.leaderboard(), ranking.pairwise(), ""
    except metarank.DisconnectedError as error:
        leaderboard, pairwise, problem = [], Pairwise(), str(error)
    order = [*(entry.method for entry in leaderboard), *settings.methods]
    protocols = [case.protocol for case in ranking.table.cases]
    provenance = join(part for result in results for part in result.provenance)
    return Document(
        schema=SCHEMA,
        run=replace(run, seconds_per_image=ranking.seconds(), provenance=provenance),
        settings=settings,
        missing=list(missing),
        cases=ranking.cases(),
        leaderboard=leaderboard,
        leaderboard_problem=problem,
        pairwise=pairwise,
        consistency=consistency.study(ranking.table, verdicts.checkpoints(checks)),
        protocol_verdicts=verdicts.of_protocols(protocols, checks),
        method_verdicts=verdicts.of_methods(order, checks),
        checks=list(checks),
        laws=list(laws),
        gates=[],
    )


@dataclass(frozen=True)
class Ranking:
    """The results of all cases, and what follows from them."""

    results: Sequence[CaseResult]
    methods: Sequence[str]
    seed: int

    @cached_property
    def table(self) -> consistency.Table:
        """The scores, [cases, methods] with NaN where a method has none."""
        rows = [[result.outcomes[name].score for name in self.methods] for result in self.results]
        return consistency.Table(
            cases=[Case.of(result.case) for result in self.results],
            methods=self.methods,
            scores=np.array(rows, dtype=float).reshape(len(self.results), len(self.methods)),
            higher_is_better=np.array([r.higher_is_better for r in self.results], dtype=bool),
            tolerance=TOLERANCE,
        )

    @cached_property
    def there(self) -> NDArray[np.intp]:
        """Indices of the methods that have a score in some case."""
        return np.flatnonzero(np.isfinite(self.table.scores).any(axis=0))

    @cached_property
    def fused(self) -> metarank.MetaRank:
        """The fusion over the methods that are there."""
        return metarank.fuse(
            self.table.scores[:, self.there],
            higher_is_better=self.table.higher_is_better,
            tolerance=TOLERANCE,
            names=[self.methods[index] for index in self.there],
        )

    def leaderboard(self) -> list[BoardEntry]:
        """One entry per method, best first."""
        if not len(self.there):
            return []
        low, high = self._intervals()
        places = metarank.places(self.fused.kappa)
        return [self._entry(int(places[at]), at, low, high) for at in self.fused.order]

    def _entry(
        self, place: int, at: int, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> BoardEntry:
        index = self.there[at]
        return BoardEntry(
            method=self.methods[index],
            meta_rank=float(self.fused.kappa[at]),
            low=_number(low[at]),
            high=_number(high[at]),
            rank=place,
            mean_rank=float(np.nanmean(self.table.ranks[:, index])),
            wins=self.fused.share_won(at),
            beats_random=self._beats_random(self.methods[index]),
        )

    def pairwise(self) -> Pairwise:
        """How often each method beats each other one, and the logits that were fused."""
        if not len(self.there):
            return Pairwise()
        return Pairwise(
            methods=[self.methods[index] for index in self.there],
            probability=[[_number(x) for x in row] for row in self.fused.probability],
            logit=[[_number(x) for x in row] for row in self.fused.logit],
            residual=self.fused.residual,
        )

    def cases(self) -> list[CaseEntry]:
        """One entry per case, with every method's score."""
        return [
            CaseEntry(
                **vars(case),
                id=case.id,
                higher_is_better=result.higher_is_better,
                images=result.images,
                accuracy=result.accuracy,
                protocol_settings=result.protocol_settings,
                tuning=result.tuning,
                scores={
                    name: _score(result.outcomes[name], _number(rank))
                    for name, rank in zip(self.methods, ranks, strict=True)
                },
                caveats=result.caveats,
                settled=result.settled,
                data=result.data,
                weights=result.weights,
            )
            for case, result, ranks in zip(
                self.table.cases, self.results, self.table.ranks, strict=True
            )
        ]

    def seconds(self) -> dict[str, float | None]:
        """Mean attribution time of each method, in seconds per image."""
        means: dict[str, float | None] = {}
        for name in self.methods:
            times = [result.outcomes[name].seconds for result in self.results]
            known = [time for time in times if time is not None]
            means[name] = float(np.mean(known)) if known else None
        return means

    def _intervals(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        names = [self.methods[index] for index in self.there]
        if not any(len(result.standings) for result in self.results):  # nothing was resampled
            return np.full(len(names), np.nan), np.full(len(names), np.nan)
        return metarank.intervals(
            [_standings(result, names) for result in self.results],
            [case.pair for case in self.table.cases],
            tolerance=TOLERANCE,
            seed=derive(self.seed, "fusion"),
        )

    def _beats_random(self, method: str) -> Counts:
        """In how many of the cases to which the method applies it beats `random`."""
        beats = [result.outcomes[method].beats_random for result in self.results]
        return Counts(beats.count(True), of=len(beats) - beats.count(None))


def _standings(result: CaseResult, methods: Sequence[str]) -> NDArray[Any]:
    """Those of the case, with these methods as columns."""
    if list(result.outcomes) == methods:
        return result.standings
    columns = {name: column for column, name in enumerate(result.outcomes)}
    return result.standings[:, [columns[name] for name in methods]]


def _score(outcome: Outcome, rank: float | None) -> ScoreEntry:
    """What the report shows of an outcome."""
    shown = {field.name: getattr(outcome, field.name) for field in fields(Score)}
    return ScoreEntry(**shown, rank=rank, beats_random=outcome.beats_random)


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
