"""Soundness: how much of what a map calls salient helps the model (Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol, Reduction, Rows
from attrcheck.protocols import protocol
from attrcheck.protocols.order import least, pixel_counts, ranks_of, sums_from
from attrcheck.protocols.responses import answers, stacked
from attrcheck.protocols.values import Normalisation, normalised
from attrcheck.removal import removal as removals
from attrcheck.store.digests import digest

Floats = NDArray[np.float64]

PERCENT = tuple(range(98, 2, -1))
"""Per cent of the pixels that are missing, step by step: the paper's 96 mask ratios."""
STRIDE = {"smoke": 6, "default": 6}
"""By profile, how many of the ratios make one step; one where none is given.

A step of six per cent of the pixels must lift accuracy by six times as much as one of the paper's.
If one per cent were enough for steps of any width, hardly a step would be false: on digits-resnet
and shapes-vgg, with 100 images, the rankings of 34 methods by 16 and by 96 steps would agree by .41
and .40 instead of .74 and .57. Finer steps cost more and come closer: 48 of them by .78 and .88.
"""
LEVELS = 101
"""Accuracies that the area is taken over."""


@dataclass(frozen=True)
class Soundness(Protocol):
    """Area of q over accuracy, q the share of included attribution that moved accuracy up.

    The most salient pixels are inserted: at step k the n_k = round(P r_k) least salient ones are
    imputed. s_k is the accuracy, R_k an image's included attribution, D_k what step k added to it.
    Where s_k - s_(k-1) < `rise` and s_k > `start`, D_k is false: F_k = F_(k-1) + D_k. Then
    q_k = mean of (R_k - F_k) / R_k over images with R_k > 0. The start is never below chance.

    The score is the mean of q over accuracies from the start to `level`, the highest that every
    competitor reaches, read off along the best accuracy so far; in [0, 1], higher is better.
    Images whose normalised map is constant take no part.
    """

    percent: tuple[int, ...] = PERCENT
    rise: Fraction = Fraction(1, 100)
    start: Fraction = Fraction(4, 100)
    normalisation: Normalisation = "max"
    removal: str = "noisy_linear"
    level: float | None = None
    most_images: int | None = None
    higher_is_better = True
    bounds = (0.0, 1.0)
    least_images = 100

    @property
    def observation(self) -> str:
        """All settings but those of the reduction."""
        return f"soundness.{self.removal}.{self.normalisation}.{digest(self.percent)}"

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Responses and the attribution included, [N, steps]; NaN for a map that is undefined."""
        values = normalised(maps, self.normalisation)
        ranks = ranks_of(values.nan_to_num(), batch.seeds)
        remove = removals.get(self.removal).of(batch.images, batch.seeds)
        counts = pixel_counts(ranks[0].numel(), self.percent, 100)
        keeps = (~least(ranks, n).to(batch.images.device) for n in counts)
        steps = (answers(model, remove(keep), batch.labels) for keep in keeps)
        rows = stacked(steps, included=sums_from(values, ranks, counts))
        return {**rows, "chance": np.full(len(maps), batch.chance)}

    def settle(self, competitors: Sequence[Rows]) -> Soundness:
        """This protocol up to the highest accuracy that all competitors reach, if they start."""
        defined = [rows for rows in map(_defined, competitors) if len(rows["included"])]
        best = [(rows["correct"].mean(axis=0).max(), rows["chance"][0]) for rows in defined]
        reached = [float(top) for top, chance in best if top > self._start(float(chance))]
        return replace(self, level=min(reached)) if reached else self

    def reduce(self, rows: Rows) -> Reduction:
        """The curve (s_k, q_k), and the mean of q along it."""
        defined = _defined(rows)
        missing = len(rows["included"]) - len(defined["included"])
        if not len(defined["included"]):
            return Reduction(np.nan, undefined=missing)
        once = np.ones((1, len(defined["included"])), dtype=np.int64)
        curves = self.curves(defined, once)
        (score,) = self._means(*curves, float(defined["chance"][0]))
        accuracy, q = (curve[0].tolist() for curve in curves)
        return Reduction(float(score), (accuracy, q), undefined=missing)

    def resample(self, rows: Rows, counts: NDArray[np.int64]) -> Floats:
        """The score on every resample, from all curves at once."""
        defined = _defined(rows)
        if defined is not rows:
            counts = counts[:, _is_defined(rows)]
        scores = np.full(len(counts), np.nan)
        drawn = counts.any(axis=1)
        if not drawn.any():
            return scores
        curves = self.curves(defined, counts if drawn.all() else counts[drawn])
        scores[drawn] = self._means(*curves, float(defined["chance"][0]))
        return scores

    def curves(self, rows: Rows, counts: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """s and q, [resamples, steps], when image i is drawn counts[b, i] times."""
        # Steps first: what is divided and multiplied by the image lies side by side.
        included = rows["included"].T.astype(np.float64, order="C")
        added = np.diff(included, axis=0, prepend=0.0)
        drawn = counts.astype(np.float64, order="C")
        # Exact, as they are whole numbers: a product of integers would take far longer.
        right = (drawn @ rows["correct"].astype(np.float64)).astype(np.int64)
        total = counts.sum(axis=1, keepdims=True)
        false = self._false(right, total, float(rows["chance"][0]))
        ever = np.flatnonzero(false.any(axis=0))  # the other steps add nothing
        q: Floats = np.empty(false.shape)
        for k, so_far in enumerate(included):
            steps = ever[ever <= k]
            some = so_far > 0
            weights, times, new = drawn, total[:, 0], added[steps]
            if not some.all():
                weights, new, so_far = drawn[:, some], new[:, some], so_far[some]
                times = weights.sum(axis=1)
            shares = new / so_far
            with np.errstate(invalid="ignore", divide="ignore"):
                wrong = ((weights @ shares.T) * false[:, steps]).sum(axis=1) / times
            q[:, k] = 1 - wrong.clip(0, 1)
        return right / total, q

    def _false(
        self, right: NDArray[np.int64], total: NDArray[np.int64], chance: float
    ) -> NDArray[np.bool_]:
        """Which steps added only false attribution; counts of images are compared, not floats."""
        start = self._start(chance)
        stalled = np.diff(right, axis=1, prepend=0) * self.rise.denominator < (
            self.rise.numerator * total
        )
        return np.asarray(stalled & (right * start.denominator > start.numerator * total))

    def _start(self, chance: float) -> Fraction:
        return max(self.start, Fraction(chance).limit_denominator(10**6))

    def _means(self, accuracy: Floats, q: Floats, chance: float) -> Floats:
        """The mean of each q over accuracies from the start to the level, where there is a q.

        A curve that does not get past the start has none.
        """
        start = float(self._start(chance))
        level = accuracy.max(axis=1) if self.level is None else np.full(len(q), self.level)
        known = np.isfinite(q)
        best = np.maximum.accumulate(np.where(known, accuracy, -1.0), axis=1)
        record = np.diff(best, axis=1, prepend=-1.0) > 0
        points = np.linspace(start, level, LEVELS, axis=1)
        read = np.full(points.shape, np.nan)
        for b in np.flatnonzero((level > start) & (best[:, -1] > start)):
            read[b] = np.interp(points[b], best[b, record[b]], q[b, record[b]])
        return np.asarray(read.mean(axis=1))


def _defined(rows: Rows) -> Rows:
    """The rows of images whose map is defined."""
    chosen = _is_defined(rows)
    return rows if chosen.all() else {name: row[chosen] for name, row in rows.items()}


def _is_defined(rows: Rows) -> NDArray[np.bool_]:
    return np.asarray(np.isfinite(rows["included"].astype(np.float64)).all(axis=1))


@protocol("soundness")
def soundness(profile: str = "full") -> Soundness:
    """Share of the salient attribution that lifts accuracy as it is inserted; higher is better."""
    stride = STRIDE.get(profile, 1)
    return Soundness(PERCENT[::stride], rise=Fraction(stride, 100))
