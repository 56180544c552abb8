"""Where the right map is known, no judge may prefer another (Li et al. 2024)."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.adapters.metrics import Metric
from attrcheck.checks import check
from attrcheck.checks._linear import SHAPE, Change, Trial, sign_of_sum
from attrcheck.checks._rankings import copy_with
from attrcheck.contracts import Lab, Protocol, Reduction, Verdict
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.completeness import Completeness
from attrcheck.protocols.soundness import Soundness
from attrcheck.store.seeds import derive

POINTS = 1000
TRIALS = {"smoke": 1, "default": 5, "full": 1000}
ENOUGH = 100
"""Trials of those protocols for which nothing was published."""
GRID = 5
"""In the place of a grid that does not divide the image."""
SAME = 0.01
"""Scores that differ by no more are the same."""

Scores = dict[str, NDArray[np.float64]]
"""Of each copy in each trial; the higher, the better, whatever the protocol says."""


def claims_faithfulness(protocol: Protocol) -> bool:
    """Whether it judges a map by what the model, as it is, makes of images alone."""
    needs = {"masks", "training"} & set(protocol.needs)
    return not (needs or protocol.tuning or isinstance(protocol, Metric))


@check(
    "linear_ground_truth",
    over="protocols",
    fits=claims_faithfulness,
    known_failures={
        "completeness": "Introduce lowers completeness, from .80 to .60: what speaks against the "
        "label is taken away with the rest, and that helps a linear model",
    },
)
def linear_ground_truth(lab: Lab, protocol: str) -> Verdict:
    """On the sign of a sum the exact map is beaten by no copy with attribution taken or added.

    1,000 points in 200 dimensions a trial. In its default size, whatever the profile.
    """
    judge = fitted(protocols.get(protocol).make("default"))
    model, settings = sign_of_sum(), lab.settings
    published = isinstance(judge, Soundness | Completeness)
    trials = min(TRIALS[settings.profile], TRIALS["full"] if published else ENOUGH)
    found = []
    for number in range(trials):
        lab.progress(f"linear_ground_truth of {protocol}: trial {number + 1} of {trials}")
        seed = derive(settings.seed, "linear_ground_truth", str(number))
        found.append(reductions(judge, model, Trial(POINTS, seed)))
    sign = 1 if judge.higher_is_better else -1
    scores = {name: np.array([sign * trial[name].score for trial in found]) for name in found[0]}
    wrong = broken(judge, scores)
    figures = {
        **{name: float(sign * every.mean()) for name, every in scores.items()},
        **{f"{name}_std": float(every.std()) for name, every in scores.items()},
        **curves(found),
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
        own = replace(batch, attribute=partial(spoilt, trial, change))
        rows[name] = protocol.observe(model, own, spoilt(trial, change, trial.images), shared)
    judge = protocol.settle(list(rows.values()))
    return {name: judge.reduce(every) for name, every in rows.items()}


def spoilt(trial: Trial, change: Change, images: Tensor) -> Tensor:
    """The exact map of images in the place of the trial's own, changed."""
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
    gain = {name: float((every - exact).mean()) for name, every in scores.items()}
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


def curves(found: list[dict[str, Reduction]]) -> dict[str, list[float]]:
    """The mean curve of each copy over the trials, and its spread, where there are curves."""
    figures = {}
    for name in found[0]:
        drawn = [trial[name].curve for trial in found]
        heights = np.array([curve[1] for curve in drawn if curve])
        if len(heights):
            figures[f"{name}_curve"] = heights.mean(axis=0).tolist()
            figures[f"{name}_curve_std"] = heights.std(axis=0).tolist()
    return figures
