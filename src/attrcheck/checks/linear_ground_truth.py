"""Where the right map is known, no protocol may prefer another (Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.adapters.metrics import Metric
from attrcheck.checks import check
from attrcheck.checks._rankings import copy_with
from attrcheck.contracts import Batch, Lab, Protocol, Reduction, Verdict
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.completeness import Completeness
from attrcheck.protocols.responses import responses
from attrcheck.protocols.soundness import Soundness
from attrcheck.store.seeds import derive
from attrcheck.tensors.draws import uniform_draws

SHAPE = (10, 20)
"""Two hundred dimensions, laid out as an image."""
SHARE = 0.5
"""Of the pixels that could lose or gain attribution, how many do."""
POINTS = 1000
TRIALS = {"smoke": 1, "default": 5, "full": 1000}
ENOUGH = 100
"""Trials of those protocols for which nothing was published."""
GRID = 5
"""In place of a grid that does not divide the image."""
SAME = 0.01
"""Scores that differ by no more are the same."""

Change = Callable[[Tensor], Tensor]
"""A map [N, H, W] in, a worse one out; the same pixels are hit however often it is called."""
Scores = dict[str, NDArray[np.float64]]
"""Of each copy in each trial; the higher, the better, whatever the protocol says."""


def claims_faithfulness(protocol: Protocol) -> bool:
    """Whether it scores a map by nothing but what the model, as it is, makes of images."""
    needs = {"masks", "training"} & set(protocol.needs)
    return not (needs or protocol.tuning or protocol.arranges or isinstance(protocol, Metric))


@check("linear_ground_truth", over="protocols", fits=claims_faithfulness)
def linear_ground_truth(lab: Lab, name: str) -> Verdict:
    """On the sign of a sum the exact map is beaten by no copy with attribution taken or added.

    1,000 points in 200 dimensions per trial. Protocols have their default size, in any profile.
    """
    protocol = fitted(protocols.get(name).make("default"))
    model, settings = sign_of_sum(), lab.settings
    published = isinstance(protocol, Soundness | Completeness)
    trials = min(TRIALS[settings.profile], TRIALS["full"] if published else ENOUGH)
    by_trial = []
    for number in range(trials):
        lab.progress(f"linear_ground_truth of {name}: trial {number + 1} of {trials}")
        seed = derive(settings.seed, "linear_ground_truth", str(number))
        by_trial.append(reductions(protocol, model, Trial(POINTS, seed)))
    sign = 1 if protocol.higher_is_better else -1
    scores = {
        copy: np.array([sign * trial[copy].score for trial in by_trial]) for copy in by_trial[0]
    }
    wrong = broken(protocol, scores)
    figures = {
        **{copy: float(sign * of_trials.mean()) for copy, of_trials in scores.items()},
        **{f"{copy}_std": float(of_trials.std()) for copy, of_trials in scores.items()},
        **curves(by_trial),
    }
    return Verdict(not wrong, figures, "; ".join(wrong))


def fitted(protocol: Protocol) -> Protocol:
    """The protocol, with a grid that divides the image."""
    grid = getattr(protocol, "grid", 1)
    return copy_with(protocol, grid=GRID) if any(side % grid for side in SHAPE) else protocol


def reductions(protocol: Protocol, model: nn.Module, trial: Trial) -> dict[str, Reduction]:
    """What the protocol makes of the exact map and of its copies, as of competitors."""
    batch = trial.batch(model)
    shared = protocol.observe_shared(model, batch)
    rows = {}
    for name, change in trial.changes.items():
        altered = replace(batch, attribute=partial(spoilt, trial, change))
        rows[name] = protocol.observe(model, altered, spoilt(trial, change, trial.images), shared)
    settled = protocol.settle(list(rows.values()))
    return {name: settled.reduce(observed) for name, observed in rows.items()}


def spoilt(trial: Trial, change: Change, images: Tensor) -> Tensor:
    """The exact map of images in place of the trial's, changed."""
    return change(trial.exact(images))


def broken(protocol: Protocol, scores: Scores) -> list[str]:
    """Which promises are not kept, in words."""
    exact = scores["exact"]
    if not np.isfinite(exact).all():
        return ["the exact map has no score"]
    wrong = [
        f"the exact map loses to {name} in {(scores[name] > exact).mean():.0%} of the trials"
        for name in scores
        if (scores[name] > exact).any()
    ]
    gain = {name: float((of_trials - exact).mean()) for name, of_trials in scores.items()}
    lowered = {name for name in scores if (scores[name] < exact).all()}
    must = {"shuffled"}
    if isinstance(protocol, Soundness):
        must |= {"introduce"}
        if abs(gain["remove"]) > SAME:
            wrong.append(f"remove changes the score by {gain['remove']:.3f}")
    elif isinstance(protocol, Completeness):
        must |= {"remove"}
        if gain["introduce"] < -SAME:
            wrong.append(f"introduce changes the score by {gain['introduce']:.3f}")
    return wrong + [f"{name} does not lower the score" for name in sorted(must - lowered)]


def curves(trials: list[dict[str, Reduction]]) -> dict[str, list[float]]:
    """The mean curve of each copy over the trials, and its spread, where there are curves."""
    figures = {}
    for name in trials[0]:
        drawn = [trial[name].curve for trial in trials]
        heights = np.array([curve[1] for curve in drawn if curve])
        if len(heights):
            figures[f"{name}_curve"] = heights.mean(axis=0).tolist()
            figures[f"{name}_curve_std"] = heights.std(axis=0).tolist()
    return figures


def sign_of_sum() -> nn.Module:
    """Two logits, minus and plus the sum over the pixels, scaled to unit variance on N(0, I)."""
    pixels = SHAPE[0] * SHAPE[1]
    linear = nn.Linear(pixels, 2, bias=False)
    plus = torch.full((pixels,), pixels**-0.5)
    linear.weight = nn.Parameter(torch.stack([-plus, plus]), requires_grad=False)
    return nn.Sequential(nn.Flatten(), linear).eval()


@dataclass(frozen=True)
class Trial:
    """Points from N(0, I), labelled by the sign of their sum, and ways to spoil their maps."""

    points: int
    seed: int

    @cached_property
    def images(self) -> Tensor:
        """[N, 1, H, W]."""
        generator = torch.Generator().manual_seed(derive(self.seed, "points"))
        return torch.randn(self.points, 1, *SHAPE, generator=generator)

    @cached_property
    def labels(self) -> Tensor:
        """1 where the sum is positive."""
        return (self.images.sum((1, 2, 3)) > 0).long()

    def exact(self, images: Tensor) -> Tensor:
        """What each pixel adds to the label's logit, but for the scale: x, or -x for label 0."""
        return images[:, 0] * (2 * self.labels - 1)[:, None, None]

    def batch(self, model: nn.Module) -> Batch:
        """All points, as a protocol sees them."""
        seeds = tuple(derive(self.seed, "ties", str(point)) for point in range(self.points))
        intact = responses(model, self.images, self.labels)
        return Batch(self.images, self.labels, seeds, intact, chance=0.5)

    @cached_property
    def changes(self) -> dict[str, Change]:
        """The exact map as it is, and copies of it.

        remove: half of the predictive pixels get nothing. introduce: half of the others get
        between nothing and the largest value. The largest value stays, so that a protocol that
        divides by it changes nothing else. noise: as strong as the signal. shuffled: no signal.
        """
        exact = self.exact(self.images)
        top = exact.amax((1, 2), keepdim=True)
        (draws,) = uniform_draws((derive(self.seed, "changes"),), (3, self.points, *SHAPE))
        hit = (draws[0] < SHARE) & (exact < top)
        given = draws[1] * top
        order = draws[2].flatten(1).argsort(1)
        generator = torch.Generator().manual_seed(derive(self.seed, "noise"))
        noise = torch.randn(exact.shape, generator=generator)
        return {
            "exact": lambda maps: maps,
            "remove": lambda maps: maps.masked_fill(hit & (maps > 0), 0.0),
            "introduce": lambda maps: torch.where(hit & (maps <= 0), given, maps),
            "noise": lambda maps: maps + noise,
            "shuffled": lambda maps: maps.flatten(1).gather(1, order).view_as(maps),
        }
