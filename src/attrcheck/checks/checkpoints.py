"""A ranking should hold along the training of one model, if anywhere."""

from __future__ import annotations

import functools

from attrcheck.checks import check
from attrcheck.checks._rankings import alike, both_rankings
from attrcheck.contracts import Case, Lab, Pair, Protocol, Verdict
from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.models import model as models
from attrcheck.protocols.ablation import TENTHS, Ablation
from attrcheck.training.weights import CHECKPOINTS, load_weights


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
        rankings[f"at_{percent}"] = both_rankings(lab, case, other)
    return alike("earlier in training", **rankings)


@functools.lru_cache(maxsize=3)
def turned_back(pair: Pair, percent: int) -> Pair:
    """The pair with the weights of a checkpoint in the place of the last."""
    network = models.get(pair.model).build(pair.dataset)
    load_weights(network, pair.dataset.name, pair.model, percent)
    network = network.eval().to(pair.images.device)
    return pair.altered(
        f"checkpoint {percent}", network=prepare(network), predictor=predictor_of(network)
    )
