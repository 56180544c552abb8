"""A ranking should hold along the training of one model, if anywhere."""

from __future__ import annotations

import functools
from dataclasses import replace

from attrcheck.cases import Case
from attrcheck.checks import Verdict, check
from attrcheck.checks._stability import alike
from attrcheck.fingerprint import digest
from attrcheck.lab import Lab
from attrcheck.loading import Setup
from attrcheck.models import model as models
from attrcheck.models._fast import fast
from attrcheck.models._prepare import prepare
from attrcheck.models._weights import CHECKPOINTS, load_weights
from attrcheck.protocols import Protocol
from attrcheck.protocols._ablation import TENTHS, Ablation


def published(protocol: Protocol) -> bool:
    """Whether it is one of the two for which the paper looked along trajectories."""
    if not isinstance(protocol, Ablation):
        return False
    return (protocol.removal, protocol.at, protocol.measure) == ("mean", TENTHS, "correct")


@check("checkpoints", over="cases", fits=published, sampled=True)
def checkpoints(lab: Lab, case: Case) -> Verdict:
    """Models after a quarter, half and three quarters of training rank the methods as the last.

    On a few images; of embedded models only, which come with their trajectories.
    """
    if not models.get(case.model).embedded:
        return Verdict(None, {}, "the model has no checkpoints on record")
    rankings = {}
    for percent in CHECKPOINTS[:-1]:
        other = lab.few(case, alter=functools.partial(turned_back, percent=percent))
        rankings[f"at_{percent}"] = lab.rankings(case, other)
    return alike("earlier in training", **rankings)


@functools.lru_cache(maxsize=3)
def turned_back(setup: Setup, percent: int) -> Setup:
    """The pair with the weights of a checkpoint in the place of the last."""
    network = models.get(setup.model).build(setup.dataset)
    load_weights(network, setup.dataset.name, setup.model, percent)
    network = network.eval().to(setup.images.device)
    return replace(
        setup,
        network=prepare(network),
        judge=fast(network),
        fingerprint=digest(setup.fingerprint, percent),
    )
