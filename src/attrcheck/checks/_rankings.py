"""Two rankings of the same methods: how they are made, and whether they agree."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from attrcheck.consistency import LEAST_METHODS, WEAK
from attrcheck.contracts import Case, Evaluation, Lab, Protocol, Rows, Scores, Verdict
from attrcheck.errors import cut
from attrcheck.methods import method as methods
from attrcheck.ranks import spearman

MOST_REASON = 200
"""Characters of the reason why methods were left out."""


@dataclass(frozen=True)
class Rankings:
    """Scores of the same methods as the run has them, and with something changed.

    left_out: why methods that the run has are not in the other.
    """

    usual: Scores
    other: Scores
    left_out: Mapping[str, str] = field(default_factory=dict)


def alike(what: str, **rankings: Rankings) -> Verdict:
    """Passed unless the rank correlation of any pair is weak; named by what was changed.

    The reason names methods that were left out, passed or not.
    """
    figures = {name: agreement(pair.usual, pair.other) for name, pair in rankings.items()}
    known = {name: value for name, value in figures.items() if not math.isnan(value)}
    missing = _told(rankings.values())
    if not known:
        few = f"fewer than {LEAST_METHODS} methods have a score in both"
        return Verdict(None, {}, "; ".join(filter(None, [few, missing])))
    weak = {name: value for name, value in known.items() if value < WEAK}
    values = ", ".join(f"{value:.2f} ({name.replace('_', ' ')})" for name, value in weak.items())
    reason = f"{what}, methods are ranked differently: rank correlation {values}, below {WEAK}"
    return Verdict(not weak, known, "; ".join(filter(None, [reason if weak else "", missing])))


def _told(rankings: Iterable[Rankings]) -> str:
    """Which methods were left out and why, those of one reason together."""
    names: dict[str, dict[str, None]] = {}
    for ranking in rankings:
        for name, reason in ranking.left_out.items():
            names.setdefault(cut(reason, MOST_REASON), {})[name] = None
    told = [f"{', '.join(some)} ({reason})" for reason, some in names.items()]
    return f"left out: {', '.join(told)}" if told else ""


def both_rankings(lab: Lab, case: Case, other: Evaluation) -> Rankings:
    """The scores of the case, on no more images than the other evaluation has, and the other's."""
    usual = lab.evaluation(case)
    one = scores(usual.protocol, first(usual.rows(), other.images))
    missing = {name: reason for name, reason in other.left_out.items() if name in one}
    return Rankings(one, scores(other.protocol, other.rows()), missing)


def scores(protocol: Protocol, rows: Mapping[str, Rows]) -> dict[str, float]:
    """The score of each method's rows, higher being better; undefined ones are left out."""
    settled = protocol.settle(list(rows.values()))
    sign = 1 if protocol.higher_is_better else -1
    signed = {name: sign * settled.reduce(observed).score for name, observed in rows.items()}
    return {name: score for name, score in signed.items() if np.isfinite(score)}


def agreement(one: Scores, other: Scores) -> float:
    """Spearman's correlation of two rankings of the methods that both have; NaN if too few."""
    common = sorted(set(one) & set(other))
    if len(common) < LEAST_METHODS:
        return float("nan")
    return float(spearman([[one[name] for name in common]], [[other[name] for name in common]])[0])


def first(rows: Mapping[str, Rows], images: int | slice) -> dict[str, Rows]:
    """The rows of some of the images, for every method."""
    part = slice(images) if isinstance(images, int) else images
    return {
        name: {key: row[part] for key, row in observed.items()} for name, observed in rows.items()
    }


def has_setting(protocol: Protocol, name: str) -> bool:
    """Whether the protocol has a setting of this name, so that a copy can have another."""
    return name in getattr(protocol, "__dataclass_fields__", {})


def copy_with(protocol: Protocol, **changes: object) -> Protocol:
    """The protocol with other settings."""
    return replace(protocol, **changes)  # type: ignore[type-var]


def is_quick(protocol: Protocol) -> bool:
    """Whether other maps can be scored at once, without networks that are trained first."""
    return not protocol.training_images


@functools.cache
def is_dummy(name: str) -> bool:
    """Whether a method ignores the model."""
    return methods.get(name).dummy
