"""The report: `report.json` holds it, every renderer shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attrcheck import consistency, metarank, separation
from attrcheck.contracts import Case, Weights
from attrcheck.engine.results import CaseResult, CheckResult, LawResult, Outcome, Score, join
from attrcheck.ranks import defined
from attrcheck.report import verdicts, weighing
from attrcheck.report.types import (
    BoardEntry,
    CaseEntry,
    Counts,
    Document,
    Pairwise,
    Run,
    ScoreEntry,
    Separation,
    SettingsShown,
)
from attrcheck.store.seeds import derive
from attrcheck.table import Table
from attrcheck.tallies import TOLERANCE

SCHEMA = 2
DIGITS = 4
"""Of margins."""


def build(
    results: Sequence[CaseResult],
    checks: Sequence[CheckResult],
    settings: SettingsShown,
    missing: Sequence[str],
    run: Run,
    laws: Sequence[LawResult] = (),
) -> Document:
    """Fuse the cases and lay out all that is known; `run` takes everything that is volatile."""
    ranking = Ranking(
        *(results, settings.methods, settings.seed, settings.weights, settings.families)
    )
    try:
        leaderboard, pairwise, problem = ranking.leaderboard(), ranking.pairwise(), ""
        told_apart = ranking.separated()
    except metarank.DisconnectedError as error:
        leaderboard, pairwise, problem = [], Pairwise(), str(error)
        told_apart = Separation(problem=problem)
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
        separation=told_apart,
        families=weighing.boards(ranking.table, settings.families),
    )


@dataclass(frozen=True)
class Ranking:
    """The results of all cases, and what follows from them; families: of the protocols, by name."""

    results: Sequence[CaseResult]
    methods: Sequence[str]
    seed: int
    scheme: Weights = "equal"
    families: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def table(self) -> Table:
        """The scores, [cases, methods] with NaN where a method has none."""
        rows = [[result.outcomes[name].score for name in self.methods] for result in self.results]
        cases = [Case.of(result.case) for result in self.results]
        return Table(
            cases=cases,
            methods=self.methods,
            scores=np.array(rows, dtype=float).reshape(len(self.results), len(self.methods)),
            higher_is_better=np.array([r.higher_is_better for r in self.results], dtype=bool),
            tolerance=TOLERANCE,
            weights=weighing.weights(cases, self.scheme, self.families),
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
            weights=self.table.weights,
        )

    def leaderboard(self) -> list[BoardEntry]:
        """One entry per method, best first."""
        if not len(self.there):
            return []
        low, high = metarank.ends(self.samples)
        places = metarank.places(self.fused.kappa)
        return [self._entry(int(places[at]), at, low, high) for at in self.fused.order]

    def _entry(
        self, place: int, at: int, low: NDArray[np.float64], high: NDArray[np.float64]
    ) -> BoardEntry:
        index, told = self.there[at], self.told_apart
        return BoardEntry(
            method=self.methods[index],
            meta_rank=float(self.fused.kappa[at]),
            low=defined(low[at]),
            high=defined(high[at]),
            rank=place,
            mean_rank=float(np.nanmean(self.table.ranks[:, index])),
            wins=self.fused.share_won(at),
            beats_random=self._beats_random(self.methods[index]),
            letters=told.letters(at) if told else "",
            best=int(told.best[at]) if told else None,
            worst=int(told.worst[at]) if told else None,
        )

    def separated(self) -> Separation:
        """Which methods are told apart, in the order of the board."""
        told = self.told_apart
        if told is None:
            why = "nothing was resampled" if len(self.there) > 1 else "it takes two methods"
            many = f"of more than {metarank.LARGE} methods, none are told apart"
            return Separation(problem=many if len(self.there) > metarank.LARGE else why)
        order = self.fused.order
        return Separation(
            pairs=len({case.pair for case in self.table.cases}),
            critical=defined(round(told.critical, DIGITS)),
            margins=[
                [defined(round(told.margins[at, above], DIGITS)) for above in order[:row]]
                for row, at in enumerate(order)
            ],
        )

    def pairwise(self) -> Pairwise:
        """How often each method beats each other one, and the logits that were fused."""
        if not len(self.there):
            return Pairwise()
        return Pairwise(
            methods=[self.methods[index] for index in self.there],
            probability=[[defined(x) for x in row] for row in self.fused.probability],
            logit=[[defined(x) for x in row] for row in self.fused.logit],
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
                    name: _score(result.outcomes[name], defined(rank))
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

    @cached_property
    def samples(self) -> NDArray[np.float64]:
        """The Meta-Ranks of the methods that are there on samples of pairs and images."""
        names = [self.methods[index] for index in self.there]
        if not any(len(result.standings) for result in self.results):  # nothing was resampled
            return np.empty((0, len(names)))
        return metarank.resample(
            [_standings(result, names) for result in self.results],
            [case.pair for case in self.table.cases],
            tolerance=TOLERANCE,
            seed=derive(self.seed, "fusion"),
            weights=self.table.weights,
        )

    @cached_property
    def told_apart(self) -> separation.Separation | None:
        """Which of the methods that are there are told apart."""
        if not len(self.there):
            return None
        return separation.separate(self.fused.kappa, self.samples, self.table.pairs[:, self.there])

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
    shown = {part.name: getattr(outcome, part.name) for part in fields(Score)}
    return ScoreEntry(**shown, rank=rank, beats_random=outcome.beats_random)
