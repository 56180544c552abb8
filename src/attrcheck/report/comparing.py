"""Compare two reports: what moved, by how much, and what cannot be compared and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attrcheck import metarank
from attrcheck.contracts import Case, Weights
from attrcheck.engine.resampling import draws, interval
from attrcheck.ranks import defined
from attrcheck.report import weighing
from attrcheck.report.comparison import (
    KINDS,
    SCHEMA,
    BoardChange,
    Change,
    Comparison,
    Difference,
    Kind,
    Refusal,
    Side,
    Standing,
)
from attrcheck.report.details import CaseDetails, Details
from attrcheck.report.paired import Sides, of_images
from attrcheck.report.paired import differences as paired_differences
from attrcheck.report.types import CaseEntry, Counts, Document, ScoreEntry
from attrcheck.table import Table
from attrcheck.tallies import TOLERANCE

Floats: TypeAlias = NDArray[np.float64]
Ends: TypeAlias = tuple[float | None, float | None, int]
"""Of an interval, and of how many images it is."""
NO_FINGERPRINT = "does not say which images and weights it is of: run it again to compare it"


def compare(
    old: tuple[Document, Details], new: tuple[Document, Details], names: tuple[str, str]
) -> Comparison:
    """Compare two reports, each with its details; names: what to call them."""
    before, after = old[0], new[0]
    old_cases = {case.id: case for case in before.cases}
    new_cases = {case.id: case for case in after.cases}
    both = [(old_cases[case], new_cases[case]) for case in old_cases if case in new_cases]
    refused = [Refusal(one.id, reason) for one, other in both if (reason := refusal(one, other))]
    left_out = {each.case for each in refused}
    pairs = [
        _Pair(one, other, *(details.cases.get(one.id) for details in (old[1], new[1])))
        for one, other in both
        if one.id not in left_out
    ]
    methods = [name for name in before.settings.methods if name in after.settings.methods]
    scheme, families = _weights(before, after)
    common = _Common(pairs, methods, scheme, families)
    changes = common.changes()
    board, problem = common.board(changes)
    return Comparison(
        schema=SCHEMA,
        old=_side(before, names[0]),
        new=_side(after, names[1]),
        differences=differences(before, after),
        cases=[pair.id for pair in pairs],
        methods=methods,
        refused=refused,
        unscored=[Refusal(pair.id, pair.unscored) for pair in pairs if pair.unscored],
        only_old_cases=[case for case in old_cases if case not in new_cases],
        only_new_cases=[case for case in new_cases if case not in old_cases],
        only_old_methods=_without(before.settings.methods, after.settings.methods),
        only_new_methods=_without(after.settings.methods, before.settings.methods),
        board=board,
        board_problem=problem,
        changes=[change for change in changes if change.kind != "same"],
    )


def refusal(old: CaseEntry, new: CaseEntry) -> str:
    """Why two results of a case are not to be compared; empty where they are."""
    for side, case in (("old", old), ("new", new)):
        if not (case.data and case.weights):
            return f"the {side} report {NO_FINGERPRINT}"
    if old.images != new.images:
        return f"other images: {old.images} and {new.images}"
    if old.data != new.data:
        return f"other data: {old.data} and {new.data}"
    if old.weights != new.weights:
        return f"other weights: {old.weights} and {new.weights}"
    if old.higher_is_better != new.higher_is_better:
        return "another protocol: what was better is worse"
    settled = {*old.settled, *new.settled}
    changed = _changed(old.protocol_settings, new.protocol_settings, leave=settled)
    return f"other settings of the protocol: {changed}" if changed else ""


def _changed(old: Mapping[str, Any], new: Mapping[str, Any], leave: set[str]) -> str:
    names = sorted({*old, *new} - leave)
    return "; ".join(
        f"{name} {old.get(name)} and {new.get(name)}"
        for name in names
        if old.get(name) != new.get(name)
    )


def differences(old: Document, new: Document) -> list[Difference]:
    """Settings and versions that are not the same; a case may still be compared."""
    facts = [
        {
            "suite": document.settings.suite,
            "profile": document.settings.profile,
            "images": "all" if (images := document.settings.images) is None else str(images),
            "seed": str(document.settings.seed),
            "device": document.settings.device,
            "precision": document.settings.precision,
            "weights": document.settings.weights,
            "python": document.run.python,
            "machine": document.run.machine,
            **{f"version of {name}": text for name, text in document.run.versions.items()},
        }
        for document in (old, new)
    ]
    named = [
        Difference(name, facts[0].get(name, ""), facts[1].get(name, ""))
        for name in dict.fromkeys([*facts[0], *facts[1]])
    ]
    return [difference for difference in named if difference.old != difference.new]


@dataclass(frozen=True)
class _Pair:
    """A case in both reports, and the scores of its images where they are known."""

    old: CaseEntry
    new: CaseEntry
    old_details: CaseDetails | None
    new_details: CaseDetails | None

    @property
    def id(self) -> str:
        return self.old.id

    @property
    def sides(self) -> tuple[CaseEntry, CaseEntry]:
        return self.old, self.new

    @property
    def unscored(self) -> str:
        """Why scores are not to be compared though ranks are; empty where they are."""
        old, new = self.old.protocol_settings, self.new.protocol_settings
        chosen = {*old, *new} - {*self.old.settled, *self.new.settled}
        changed = _changed(old, new, leave=chosen)
        return (
            f"its methods decide together up to where they are scored: {changed}" if changed else ""
        )

    def scores(self, methods: Sequence[str]) -> Floats:
        """[2, methods], old and new; NaN where not both have one."""
        rows = [[_score(case.scores.get(name)) for name in methods] for case in self.sides]
        table = np.array(rows, dtype=np.float64)
        table[:, ~np.isfinite(table).all(axis=0)] = np.nan
        return table

    def change(self, method: str, ranks: tuple[float, float], ends: Ends | None) -> Change | None:
        """What became of a method's score; None if neither has one."""
        old, new = (case.scores.get(method) for case in self.sides)
        before, after = (None if entry is None else entry.score for entry in (old, new))
        if before is None and after is None:
            return None
        change = Change(
            *(self.id, method, "unpaired", self.old.higher_is_better, before, after),
            old_rank=defined(ranks[0]),
            new_rank=defined(ranks[1]),
        )
        if before is None:
            return replace(change, kind="gained")
        if after is None:
            why = f"{new.status}: {new.reason}" if new is not None else ""
            return replace(change, kind="lost", reason=why)
        if self.unscored:
            return replace(change, kind="same") if ranks[0] == ranks[1] else change
        change = replace(change, difference=after - before)
        if ends is not None:
            change = replace(change, low=ends[0], high=ends[1], images=ends[2])
        return replace(change, kind=_kind(change))

    def images(self, methods: Sequence[str]) -> Floats:
        """The scores of single images, [2, methods, images]; none unless they can be paired."""
        nothing = np.empty((2, len(methods), 0))
        if self.old_details is None or self.new_details is None or self.unscored:
            return nothing
        sides = [of_images(details, methods) for details in (self.old_details, self.new_details)]
        return np.array(sides) if sides[0].shape == sides[1].shape else nothing

    def intervals(self, methods: Sequence[str]) -> dict[str, Ends]:
        """Of the mean paired difference, by method: its ends, and over how many images."""
        old, new = self.images(methods)
        if not old.size:
            return {}
        paired = new - old
        known = np.isfinite(paired)
        filled, counted = np.where(known, paired, 0.0).T, known.T.astype(np.float64)
        means = []
        # Seeded by the pair alone: the same draws whichever report is the old one.
        for counts in draws(paired.shape[1], 0, f"{self.old.dataset}-{self.old.model}"):
            with np.errstate(invalid="ignore"):
                means.append((counts @ filled) / (counts @ counted))
        samples = np.concatenate(means)
        return {
            method: (*interval(samples[:, place]), int(known[place].sum()))
            for place, method in enumerate(methods)
            if known[place].any()
        }


def _kind(change: Change) -> Kind:
    """What a difference and its interval come to."""
    difference, low, high = change.difference or 0.0, change.low, change.high
    if abs(difference) <= TOLERANCE:
        return "same"
    if low is None or high is None:
        return "unpaired"
    # The interval is of the first images, the difference of all.
    if not ((low > 0 and difference > 0) or (high < 0 and difference < 0)):
        return "unclear"
    return "better" if (difference > 0) == change.higher_is_better else "worse"


@dataclass(frozen=True)
class _Common:
    """What two reports have in common: the same cases and methods in both."""

    pairs: Sequence[_Pair]
    methods: Sequence[str]
    scheme: Weights
    families: Mapping[str, str]

    @cached_property
    def tables(self) -> tuple[Table, Table]:
        """The scores of the old report and of the new one, where both have them."""
        shape = len(self.pairs), 2, len(self.methods)
        scores = np.array([pair.scores(self.methods) for pair in self.pairs]).reshape(shape)
        cases = [Case(pair.old.dataset, pair.old.model, pair.old.protocol) for pair in self.pairs]
        higher = np.array([pair.old.higher_is_better for pair in self.pairs], dtype=bool)
        weights = weighing.weights(cases, self.scheme, self.families)
        old, new = (
            Table(cases, self.methods, scores[:, side], higher, TOLERANCE, weights)
            for side in (0, 1)
        )
        return old, new

    def changes(self) -> list[Change]:
        """What became of every score that either has."""
        old, new = (table.ranks for table in self.tables)
        changes = []
        for row, pair in enumerate(self.pairs):
            ends = pair.intervals(self.methods)
            changes += [
                pair.change(method, (old[row, column], new[row, column]), ends.get(method))
                for column, method in enumerate(self.methods)
            ]
        return [change for change in changes if change is not None]

    def board(self, changes: Sequence[Change]) -> tuple[list[BoardChange], str]:
        """Both boards, fused anew; without one, why that is impossible."""
        there = np.flatnonzero(np.isfinite(self.tables[0].scores).any(axis=0))
        if not len(there):
            return [], "no method has a score in both, in a case that can be compared"
        try:
            old, new = (self._standings(side, there) for side in (0, 1))
        except metarank.DisconnectedError as error:
            return [], str(error)
        low, high = self._moved(changes)
        counts = Counter((change.method, change.kind) for change in changes)
        board = [
            BoardChange(
                *(name, old[name], new[name], new[name].meta_rank - old[name].meta_rank),
                counts={kind: counts[name, kind] for kind in KINDS if counts[name, kind]},
                low=defined(low[self.methods.index(name)]),
                high=defined(high[self.methods.index(name)]),
            )
            for name in old
        ]
        return sorted(board, key=lambda entry: (entry.new.rank, entry.method)), ""

    def _moved(self, changes: Sequence[Change]) -> Floats:
        """The ends of the intervals of how far methods moved, [2, methods]; NaN if none did."""
        if all(change.kind == "same" for change in changes):
            return np.full((2, len(self.methods)), np.nan)
        signs = [1.0 if pair.old.higher_is_better else -1.0 for pair in self.pairs]
        sides = [
            Sides(
                f"{pair.old.dataset}-{pair.old.model}",
                sign * pair.scores(self.methods),
                sign * pair.images(self.methods),
            )
            for pair, sign in zip(self.pairs, signs, strict=True)
        ]
        return paired_differences(sides, self.tables[0].weights)

    def _standings(self, side: int, there: NDArray[np.intp]) -> dict[str, Standing]:
        table, names = self.tables[side], [self.methods[column] for column in there]
        fused = metarank.fuse(
            table.scores[:, there],
            higher_is_better=table.higher_is_better,
            tolerance=TOLERANCE,
            names=names,
            weights=table.weights,
        )
        places = metarank.places(fused.kappa)
        standings = {}
        for at, name in enumerate(names):
            entries = [pair.sides[side].scores.get(name) for pair in self.pairs]
            beats = [entry.beats_random for entry in entries if entry is not None]
            standings[name] = Standing(
                meta_rank=float(fused.kappa[at]),
                rank=int(places[at]),
                mean_rank=float(np.nanmean(table.ranks[:, there[at]])),
                wins=fused.share_won(at),
                beats_random=Counts(beats.count(True), of=len(beats) - beats.count(None)),
            )
        return standings


def _weights(old: Document, new: Document) -> tuple[Weights, Mapping[str, str]]:
    """How cases weigh in both; alike, where the reports do not agree."""
    alike = old.settings.weights == new.settings.weights
    families = {**old.settings.families, **new.settings.families}
    return new.settings.weights if alike else "equal", families


def _side(document: Document, name: str) -> Side:
    methods = len(document.settings.methods)
    return Side(name, document.run.started, len(document.cases), methods)


def _score(entry: ScoreEntry | None) -> float:
    return np.nan if entry is None or entry.score is None else entry.score


def _without(names: Sequence[str], others: Sequence[str]) -> list[str]:
    return [name for name in names if name not in others]
