"""Where the truth is known, a map must find it better than what knows nothing of the model."""

from __future__ import annotations

import numpy as np
import torch

from attrcheck.attribution import MethodError, attribute_batch
from attrcheck.checks import Verdict, check
from attrcheck.datasets import dataset as datasets
from attrcheck.guard import Snapshot
from attrcheck.loading import Setup, load
from attrcheck.methods import Method
from attrcheck.methods import method as methods
from attrcheck.models import model as models
from attrcheck.outcomes import joined
from attrcheck.protocols import Rows
from attrcheck.protocols import protocol as protocols

IMAGES = 48
MEASURES = ("relevance_mass", "relevance_rank", "pointing_game")
FLOOR = ("random", "edge_sobel", "gaussian_centre_4", "intensity")
"""Dummies of four kinds: noise, edges, a guess at the place, brightness."""
ITSELF = Method("the image itself", lambda model, images, targets: images.sum(1), dummy=True)
"""As it is given: what is brighter than the dataset's mean, which finds more than brightness."""


@check("ground_truth")
def ground_truth(method: Method, setup: Setup) -> Verdict:
    """The map finds the mask of what decides the class better than the best of five dummies.

    By the mean of relevance mass, relevance rank and pointing game, each in [0, 1]. On the model
    that it is asked about; for another dataset with masks, where its own has none.
    """
    if method.dummy:
        return Verdict(None, {}, "a dummy sets the floor")
    known = masked(setup)
    if known is None:
        return Verdict(None, {}, f"no dataset that {setup.model!r} knows has masks")
    if reason := method.applies(known.network):
        return Verdict(None, {}, f"on {known.pair}: {reason}")
    figures = found(method, known)
    dummies = [*map(methods.get, FLOOR), ITSELF]
    floor = {dummy.name: mean(found(dummy, known)) for dummy in dummies}
    best = max(floor, key=lambda name: floor[name])
    score = mean(figures)
    reason = f"on {known.pair} it finds {score:.3f} of the truth, {best} {floor[best]:.3f}"
    figures |= {"mean": score, **{f"mean_of_{name}": value for name, value in floor.items()}}
    return Verdict(score > floor[best], figures, "" if score > floor[best] else reason)


def masked(setup: Setup) -> Setup | None:
    """The pair, or else the same model for the first dataset with masks that it knows."""
    if setup.dataset.masks is None:
        knows = models.get(setup.model).knows
        names = (name for name in datasets if "masks" in datasets.get(name).offers and knows(name))
        if (name := next(names, None)) is None:
            return None
        setup = load(name, setup.model, IMAGES, str(setup.images.device))
    return setup


def found(method: Method, setup: Setup) -> dict[str, float]:
    """What every measure makes of the method's maps of the first images; NaN where undefined."""
    judges = {name: protocols.get(name).make() for name in MEASURES}
    rows: dict[str, list[Rows]] = {name: [] for name in judges}
    before = Snapshot.of(setup.network)
    for part in setup.slices(IMAGES):
        maps = torch.from_numpy(attribute_batch(method, setup, part, seed=0))
        batch = setup.batch(part, 0, {})
        for name, judge in judges.items():
            rows[name].append(judge.observe(setup.judge, batch, maps.to(batch.images.device), {}))
    if change := before.change(setup.network):
        raise MethodError(f"method {method.name!r} on {setup.pair} {change}")
    return {name: judge.reduce(joined(rows[name])).score for name, judge in judges.items()}


def mean(figures: dict[str, float]) -> float:
    """Of the measures; one that is not defined for any map has found nothing."""
    return float(np.nan_to_num(list(figures.values())).mean())
