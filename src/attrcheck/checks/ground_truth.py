"""Where the truth is known, a map must find it better than what knows nothing of the model."""

from __future__ import annotations

import numpy as np
import torch

from attrcheck.checks import check
from attrcheck.contracts import Method, Pair, Rows, Verdict
from attrcheck.datasets import dataset as datasets
from attrcheck.errors import MethodError
from attrcheck.graph.guard import Snapshot
from attrcheck.methods import method as methods
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.responses import joined

IMAGES = 48
MEASURES = ("relevance_mass", "relevance_rank", "pointing_game")
FLOOR = ("random", "edge_sobel", "gaussian_centre_4", "intensity")
"""Dummies of four kinds: noise, edges, a guess at the place, brightness."""
ITSELF = Method("the image itself", lambda model, images, targets: images.sum(1), dummy=True)
"""As it is given: what is brighter than the dataset's mean, which finds more than brightness."""


@check("ground_truth")
def ground_truth(method: Method, pair: Pair) -> Verdict:
    """The map finds the mask of what decides the class better than the best of five dummies.

    By the mean of relevance mass, relevance rank and pointing game, each in [0, 1]. Where the
    dataset has no masks, the same model is asked on another that has some.
    """
    if method.dummy:
        return Verdict(None, {}, "a dummy sets the floor")
    known = masked(pair)
    if known is None:
        return Verdict(None, {}, f"no dataset that {pair.model!r} knows has masks")
    if reason := method.not_applicable(known.given(method)):
        return Verdict(None, {}, f"on {known.name}: {reason}")
    figures = measured(method, known)
    dummies = [*map(methods.get, FLOOR), ITSELF]
    floor = {dummy.name: mean(measured(dummy, known)) for dummy in dummies}
    best = max(floor, key=lambda name: floor[name])
    score = mean(figures)
    reason = f"on {known.name} it finds {score:.3f} of the truth, {best} {floor[best]:.3f}"
    figures |= {"mean": score, **{f"mean_of_{name}": value for name, value in floor.items()}}
    return Verdict(score > floor[best], figures, "" if score > floor[best] else reason)


def masked(pair: Pair) -> Pair | None:
    """The pair, or else the same model for the first dataset with masks that it knows.

    One that does not run unasked comes last.
    """
    if pair.dataset.masks is None:
        knows = models.get(pair.model).knows
        cheap = sorted(datasets, key=lambda name: not datasets.get(name).default)
        names = (name for name in cheap if "masks" in datasets.get(name).offers and knows(name))
        if (name := next(names, None)) is None:
            return None
        pair = pair.elsewhere(name, IMAGES)
    return pair


def measured(method: Method, pair: Pair) -> dict[str, float]:
    """Each measure of the method's maps of the first images; NaN where undefined."""
    measures = {name: protocols.get(name).make() for name in MEASURES}
    rows: dict[str, list[Rows]] = {name: [] for name in measures}
    before = Snapshot.of(pair.given(method))
    for part in pair.slices(IMAGES):
        maps = torch.from_numpy(pair.attribute(method, part, seed=0))
        batch = pair.batch(part, 0, {})
        maps = maps.to(batch.images.device)
        for name, measure in measures.items():
            rows[name].append(measure.observe(pair.predictor, batch, maps, {}))
    if change := before.change(pair.given(method)):
        raise MethodError(f"method {method.name!r} on {pair.name} {change}")
    return {name: measure.reduce(joined(rows[name])).score for name, measure in measures.items()}


def mean(figures: dict[str, float]) -> float:
    """Of the measures; one that is undefined for all maps counts as zero."""
    return float(np.nan_to_num(list(figures.values())).mean())
