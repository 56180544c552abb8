"""`attrcheck.score`: what a protocol makes of maps, with an interval, a curve and each image."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Method, Protocol, Rows
from attrcheck.engine.attribution import Reattribution, unchanged
from attrcheck.engine.evaluation import outcome_of
from attrcheck.engine.finding import base_of
from attrcheck.engine.observing import observe, observe_intact, observe_shared
from attrcheck.engine.plausibility import warn_of_few
from attrcheck.engine.resampling import replicates
from attrcheck.engine.results import Curve, Outcome
from attrcheck.errors import suggest
from attrcheck.notebook import charts
from attrcheck.notebook.attributing import Attribution, progress
from attrcheck.notebook.inputs import (
    NAME,
    Array,
    InputError,
    Numbers,
    Watched,
    maps_of,
    method_of,
    pair_for,
)
from attrcheck.protocols import protocol as protocols
from attrcheck.store.encoding import Entry


@dataclass(frozen=True, eq=False)
class Score:
    """The score of a method's maps; None where the protocol defines none, and `reason` says why.

    low, high: the 95% interval, from resampled images. per_image: [N], where the score is their
    mean. pair: DATASET-MODEL that it was scored on. outcome: all that the engine makes of it.
    settings: the protocol as it was asked for. settled: as it scores, see `Protocol.settle`.
    """

    method: str
    protocol: str
    pair: str
    outcome: Outcome = field(repr=False)
    per_image: NDArray[np.float64] | None = field(repr=False)
    settings: Protocol = field(repr=False)
    settled: Protocol = field(repr=False)
    rows: Rows = field(repr=False)
    seed: int = 0

    @property
    def score(self) -> float | None:
        """The score itself."""
        return self.outcome.score

    @property
    def low(self) -> float | None:
        """The lower end of its interval."""
        return self.outcome.low

    @property
    def high(self) -> float | None:
        """The upper end of its interval."""
        return self.outcome.high

    @property
    def curve(self) -> Curve | None:
        """The curve behind it, `x` and `y`, where there is one."""
        return self.outcome.curve

    @property
    def reason(self) -> str:
        """Why there is no score, where there is none."""
        return self.outcome.reason

    @property
    def higher_is_better(self) -> bool:
        """Whether higher scores are better ones."""
        return self.settings.higher_is_better

    def under(self, protocol: Protocol) -> Score:
        """What the same rows come to under the protocol that was settled among others."""
        if protocol == self.settled:
            return self
        outcome, per_image = reduced(protocol, self.rows, self.pair, self.seed, self.outcome)
        return replace(self, outcome=outcome, per_image=per_image, settled=protocol)

    def __float__(self) -> float:
        return float("nan") if self.score is None else self.score

    def __repr__(self) -> str:
        better = "higher" if self.higher_is_better else "lower"
        return f"Score({self.method!r} by {self.protocol}: {self.text}, {better} is better)"

    @property
    def text(self) -> str:
        """The score with its interval, for people."""
        return charts.number(self.score, self.low, self.high)

    def _repr_html_(self) -> str:
        return charts.score(repr(self), self.curve)


def score(
    protocol: str | Protocol,
    model: nn.Module,
    images: Array,
    targets: Any,
    maps: Attribution | Array,
    *,
    method: str | Method | Callable[..., Any] | None = None,
    masks: Any = None,
    mean: Numbers | None = None,
    std: Numbers | None = None,
    ids: Sequence[str] | None = None,
    name: str = NAME,
    seed: int = 0,
    profile: str = "default",
    quiet: bool = False,
    **settings: Any,
) -> Score:
    """Score maps by a protocol, given by its name or as an object; see `attribute` for the inputs.

    maps: what `attribute` returned, or [N, H, W] or [N, 1, H, W] from anywhere. method: which one
    made them, for protocols that ask it for further maps. masks: the ground truth [N, H, W], for
    protocols that need it. profile: that of a run, by which some protocols take fewer steps.
    settings: of the protocol, as removal="blur"; the removal `mean` puts zeros in place of pixels.

    All images take part. A protocol that settles on something between competitors, as `soundness`
    does, knows only these maps here: `rank` and `fuse` settle it among all.
    """
    made, chosen = _made(protocol, profile, settings)
    needed = _needs(made, chosen, masks)
    if needed:
        raise InputError(needed)
    source = _source(maps, method)
    given = maps.maps if isinstance(maps, Attribution) else maps
    inputs: dict[str, Any] = {"mean": mean, "std": std, "masks": masks, "ids": ids, "name": name}
    with progress(f"score {chosen}", quiet) as say:
        pair = pair_for(model, images, targets, **inputs, say=say)
        known = maps_of(given, pair.images)
        warn_of_few(made, chosen, len(known))
        rows = _rows(made, chosen, pair, known, source, seed)
    facts = Outcome("ok", seconds=maps.seconds if isinstance(maps, Attribution) else 0.0)
    settled = made.settle([rows])
    outcome, per_image = reduced(settled, rows, pair.name, seed, facts)
    title = source.name if source else "maps"
    return Score(title, chosen, pair.name, outcome, per_image, made, settled, rows, seed)


def reduced(
    protocol: Protocol, rows: Rows, pair: str, seed: int, facts: Outcome
) -> tuple[Outcome, NDArray[np.float64] | None]:
    """What rows come to, as the engine reduces and resamples them, and the scores of all images."""
    reduction = protocol.reduce(rows)
    count = len(next(iter(rows.values())))
    resampled: NDArray[np.float64] | None = None
    if np.isfinite(reduction.score):
        (resampled,) = replicates(
            protocol, {"it": rows}, {"it": reduction}, count, seed, pair
        ).values()
    seconds = (facts.seconds or 0.0) * count
    info = {"seconds": seconds, "images": count, "constant": 0, "passes": facts.passes}
    return outcome_of(Entry(rows, info), reduction, resampled), reduction.per_image


class Silent(Reattribution):
    """No method at all: whoever asks for further maps learns what to write."""

    def of(self, part: slice) -> Callable[[Tensor], Tensor]:
        """Nothing that can be called."""

        def attribute(images: Tensor) -> Tensor:
            raise InputError(
                "the protocol attributes changed images: say by method=... which method made the "
                "maps, by name or as a function"
            )

        return attribute


def _rows(
    protocol: Protocol,
    name: str,
    pair: Watched,
    maps: NDArray[np.float32],
    source: Method | None,
    seed: int,
) -> Rows:
    """What the protocol observes, as of one shard of a case."""
    intact = observe_intact(pair)
    count = len(maps)
    shared = protocol.shared
    known = observe_shared(shared, pair, count, intact, seed) if shared else {}
    if source is None:
        again: Reattribution = Silent(Method("maps", _nobody), pair, seed)
        watched: Any = nullcontext()
    else:
        base = base_of(source)
        again = Reattribution(base or source, pair, seed, absolute=base is not None)
        watched = unchanged(again.method, pair)
    with watched:
        rows, _ = observe(protocol, pair, count, maps, intact, known, again)
    return rows


def _nobody(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The method of maps that came from anywhere; it is never called."""
    return torch.zeros_like(images)


def _source(maps: Any, method: Any) -> Method | None:
    if method is not None:
        return method_of(method)
    return maps.source if isinstance(maps, Attribution) else None


def _made(protocol: str | Protocol, profile: str, settings: dict[str, Any]) -> tuple[Protocol, str]:
    """The protocol with its settings, and its name."""
    if isinstance(protocol, str):
        made, name = protocols.get(protocol).make(profile), protocol
    elif isinstance(protocol, Protocol):
        made, name = protocol, type(protocol).__name__.lower()
    else:
        raise InputError(f"a {type(protocol).__name__} is neither a protocol nor the name of one")
    known: list[str] = [one.name for one in fields(made)] if is_dataclass(made) else []
    for setting in settings:
        if setting not in known:
            raise InputError(f"{name} has no setting {setting!r}: {suggest(setting, known)}")
    return (replace(made, **settings) if settings else made), name  # type: ignore[type-var]


def _needs(protocol: Protocol, name: str, masks: Any) -> str:
    """What a protocol needs that is not to be had here; nothing if it can score."""
    suite = f"run it as a case, by pytest --pyargs attrcheck.suites --attr-protocols {name}"
    if protocol.tuning is not None:
        return f"{name} scores a model that was fine-tuned to deleted cells: {suite}"
    if protocol.arranges:
        return f"{name} makes images of its own of those of a dataset: {suite}"
    if protocol.training_images:
        return f"{name} trains networks anew on a training split: {suite}"
    if "masks" in protocol.needs and masks is None:
        return f"{name} needs ground truth: give masks=..., one bool per pixel, [N, H, W]"
    return ""
