"""What a check works with: the rows that cases have stored, and ways to look at them again."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from attrcheck.bench import Bench
from attrcheck.cases import Case
from attrcheck.consistency import LEAST_METHODS
from attrcheck.loading import Setup, load
from attrcheck.methods import method as methods
from attrcheck.protocols import Protocol, Rows
from attrcheck.ranks import spearman
from attrcheck.settings import Settings
from attrcheck.store import Store

Scores = Mapping[str, float]
"""Of methods, in one case; the higher, the better, whatever the protocol says."""

FEW = 10
"""Images for what cannot be had by looking at stored rows again."""
LEAST_IMAGES = 10
"""With fewer, a ranking is luck: a check of the case shows its figures, and is no verdict."""


@dataclass(frozen=True)
class Lab:
    """The run that a check is part of: its settings, its store and its cases."""

    settings: Settings
    store: Store
    cases: tuple[Case, ...] = ()
    progress: Callable[[str], None] = lambda text: None

    def bench(self, case: Case) -> Bench:
        """The case as the run judges it."""
        return Bench(case, self.settings, self.store)

    def few(
        self,
        case: Case,
        protocol: Protocol | None = None,
        seed: int | None = None,
        alter: Callable[[Setup], Setup] = lambda setup: setup,
    ) -> Bench:
        """The case on its first few images, under another judge, seed or change of the pair."""
        own = self.bench(case)
        most = min(own.images, FEW)
        settings, judge = self.settings, protocol or own.protocol
        capped = has_setting(judge, "most_images")
        changed = seed is not None or alter(own.setup) is not own.setup
        if changed or not capped:  # maps of its own are made for no other images
            settings = replace(settings, images=most, seed=settings.seed if seed is None else seed)
        if capped:
            judge = copy_with(judge, most_images=most)
        return Bench(case, replace(settings, images_given=False), self.store, judge, alter)

    def rankings(self, case: Case, other: Bench) -> tuple[Scores, Scores]:
        """The case's own scores, on no more images than the other bench has, and the other's."""
        own = self.bench(case)
        mine = scores(own.protocol, first(own.rows(), other.images))
        return mine, scores(other.protocol, other.rows())

    def setup(self, dataset: str, model: str) -> Setup:
        """A dataset x model of the run."""
        return load(dataset, model, self.settings.images, self.settings.device)


def has_setting(protocol: Protocol, name: str) -> bool:
    """Whether the protocol has a setting of this name, so that a copy can have another."""
    return name in getattr(protocol, "__dataclass_fields__", {})


def copy_with(protocol: Protocol, **changes: object) -> Protocol:
    """The protocol with other settings."""
    return replace(protocol, **changes)  # type: ignore[type-var]


def first(rows: Mapping[str, Rows], images: int | slice) -> dict[str, Rows]:
    """The rows of some of the images, for every method."""
    part = slice(images) if isinstance(images, int) else images
    return {name: {key: row[part] for key, row in every.items()} for name, every in rows.items()}


def scores(protocol: Protocol, rows: Mapping[str, Rows]) -> dict[str, float]:
    """What the protocol makes of every method's rows, those without a score left out."""
    judge = protocol.settle(list(rows.values()))
    sign = 1 if protocol.higher_is_better else -1
    found = {name: sign * judge.reduce(every).score for name, every in rows.items()}
    return {name: score for name, score in found.items() if np.isfinite(score)}


def agreement(one: Scores, other: Scores) -> float:
    """Spearman's correlation of two rankings of the methods that both know; NaN if too few."""
    common = sorted(set(one) & set(other))
    if len(common) < LEAST_METHODS:
        return float("nan")
    return float(spearman([[one[name] for name in common]], [[other[name] for name in common]])[0])


def is_quick(protocol: Protocol) -> bool:
    """Whether other maps can be judged at once, without a network that learns first."""
    return not protocol.lessons


@functools.cache
def is_dummy(name: str) -> bool:
    """Whether a method knows nothing of the model."""
    return methods.get(name).dummy
