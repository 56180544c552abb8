"""Rankings of methods by protocols, read from the store of a run, and how far two of them agree.

What the scripts behind docs/findings.md share. Two intervals go with a correlation: one holds 95%
of the values on resampled images, the other 95% of those on resampled models and images.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from attrcheck.consistency import LEAST_METHODS
from attrcheck.contracts import Protocol, Rows, Settings
from attrcheck.engine.cases import table
from attrcheck.engine.lab import Lab
from attrcheck.engine.resampling import replicates
from attrcheck.engine.settings import affords
from attrcheck.methods import method as methods
from attrcheck.protocols.ablation import ROAD_TENTHS, Ablation
from attrcheck.store.encoding import Entry

MODELS = ("bagnet", "bcos", "densenet", "efficientnet", "inception", "resnet", "vgg", "vit")
PROTOCOLS = "*,!roar,!ids_updated"
"""All but two: one trains networks for each method, the other attributes at each of 32 steps."""
REMOVALS = {"mean": ("morf", "lerf"), "imputed": ("road_morf", "road_lerf")}
"""The protocols of both orders, by what removed pixels become."""
LEVEL = (0.025, 0.975)
DIGITS = 6
"""Scores that agree to so many digits are ties: `difull` gives many methods 1, but for rounding."""
SEED = 0

Floats = NDArray[np.float64]
Scores = Mapping[str, Floats]
"""Of each method: its score, then that on every resample; higher is better."""
Figures = Mapping[str, Floats]
"""Of each dataset x model: a figure, then that on every resample."""


@dataclass(frozen=True)
class Observed:
    """What a protocol observed of the methods on one dataset x model."""

    pair: str
    protocol: Protocol
    rows: Mapping[str, Rows]

    @property
    def images(self) -> int:
        """How many it looked at."""
        return next(len(array) for rows in self.rows.values() for array in rows.values())

    def cut(self, change: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Observed:
        """The same with each array of rows changed."""
        rows = {
            name: {key: change(array) for key, array in some.items()}
            for name, some in self.rows.items()
        }
        return replace(self, rows=rows)

    def set(self, **changes: object) -> Observed:
        """The same rows, with other settings of the protocol."""
        return replace(self, protocol=replace(self.protocol, **changes))  # type: ignore[type-var]

    def scores(self) -> Scores:
        """The scores of the methods that have one."""
        reductions = {name: self.protocol.reduce(rows) for name, rows in self.rows.items()}
        defined = {
            name: self.rows[name] for name, one in reductions.items() if np.isfinite(one.score)
        }
        resampled = replicates(self.protocol, defined, reductions, self.images, SEED, self.pair)
        sign = 1 if self.protocol.higher_is_better else -1
        return {
            name: sign * np.array([reductions[name].score, *resampled[name]]) for name in defined
        }


Study = Mapping[str, Mapping[str, Observed]]
"""By dataset x model, then by protocol."""
Ranked = Mapping[str, Mapping[str, Scores]]
"""By dataset x model, then by protocol or change of one."""


def options(description: str | None) -> argparse.ArgumentParser:
    """What a script may be told of the run."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--profile", default="full", choices=("default", "full"))
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--pairs", default=",".join(f"objects-{model}" for model in MODELS))
    parser.add_argument("--protocols", default=PROTOCOLS, help="globs")
    parser.add_argument("--store", type=Path, help="of a run; what it lacks is computed")
    return parser


def study_of(given: argparse.Namespace) -> Study:
    """What a run with these options observed."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab.of(settings(given.store or Path(folder), given.images, given.profile))
        lab.store.open()
        return {pair: observed_on(lab, pair, given.protocols) for pair in given.pairs.split(",")}


def settings(store: Path, images: int, profile: str = "full") -> Settings:
    """Those of a run of all methods that run unasked."""
    return Settings(
        profile=profile,
        images=images,
        seed=SEED,
        methods=tuple(name for name in methods if affords(methods.get(name))),
        store=store,
        fresh=False,
        run="rankings",
        device="cpu",
        threads=1,
        memory=None,
    )


def observed_on(lab: Lab, pair: str, wanted: str) -> dict[str, Observed]:
    """What each of some protocols observed on one dataset x model."""
    dataset, model = pair.split("-")
    observed = {}
    for case in table(dataset, model, wanted, lab.settings.profile):
        print(case.id, file=sys.stderr)
        evaluation = lab.evaluation(case)
        entries = evaluation.observe_all()
        rows = {name: one.arrays for name, one in entries.items() if isinstance(one, Entry)}
        if rows:
            observed[case.protocol] = Observed(pair, evaluation.settled(entries), rows)
    return observed


def at_road(one: Observed) -> Observed:
    """A removal in order at the fractions of ROAD alone."""
    assert isinstance(one.protocol, Ablation)
    if one.protocol.at != ROAD_TENTHS:
        one = one.cut(lambda array: array[:, list(ROAD_TENTHS)])
    return one.set(at=ROAD_TENTHS)


def looking(names: Iterable[str]) -> list[str]:
    """The methods that look at the model: dummies do not."""
    return [name for name in names if not methods.get(name).dummy]


def against(ranked: Ranked, name: str, other: str) -> Figures:
    """The correlations of two protocols on each dataset x model where both rank methods."""
    agreed = {
        pair: correlations(one[name], one[other])
        for pair, one in ranked.items()
        if {name, other} <= one.keys()
    }
    return {pair: values for pair, values in agreed.items() if np.isfinite(values[:1]).all()}


def correlations(ours: Scores, theirs: Scores) -> Floats:
    """Spearman's correlation, as it is and on every resample; NaN where one does not rank.

    Dummies do not take part: that they come last says little of those that look at the model.
    """
    both = looking(name for name in ours if name in theirs)
    if len(both) < LEAST_METHODS:
        return np.full(1, np.nan)
    stacked = (np.stack([some[name] for name in both], 1).round(DIGITS) for some in (ours, theirs))
    one, other = (rankdata(values, axis=1) for values in stacked)
    one, other = (ranks - ranks.mean(1, keepdims=True) for ranks in (one, other))
    with np.errstate(invalid="ignore"):
        return np.asarray((one * other).sum(1) / np.sqrt((one**2).sum(1) * (other**2).sum(1)))


def mean_over_images(figures: Figures) -> Floats:
    """The mean over models, as it is and on every resample of images."""
    return np.asarray(np.nanmean(list(figures.values()), axis=0))


def mean_over_models(figures: Figures) -> Floats:
    """The mean over models, on every resample of models and images."""
    values = np.stack(list(figures.values()))[:, 1:]
    drawn = np.random.default_rng(SEED).integers(len(values), size=values.shape)
    return np.asarray(np.nanmean(np.take_along_axis(values, drawn, axis=0), axis=0))


def told(figures: Figures) -> str:
    """The mean over models, and both intervals."""
    if not figures:
        return ""
    images = mean_over_images(figures)
    return f"{images[0]:.2f} {interval(images[1:])} {interval(mean_over_models(figures))}"


def interval(values: Floats) -> str:
    """What holds 95% of them."""
    low, high = np.nanquantile(values, LEVEL)
    return f"[{low:.2f}, {high:.2f}]"


def row(*cells: object) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def heading(*cells: str) -> str:
    """The head of a table in Markdown."""
    return f"{row(*cells)}\n|{'---|' * len(cells)}"


def printed(tables: Mapping[str, Iterable[str]]) -> None:
    """Tables under their titles."""
    for title, lines in tables.items():
        print(f"\n{title}\n", *lines, sep="\n")
