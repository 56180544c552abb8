"""The contract that makes results independent of how they were computed."""

from __future__ import annotations

import numpy as np

from attrcheck.checks import check
from attrcheck.contracts import Method, Pair, Verdict
from attrcheck.errors import MethodError
from attrcheck.graph.guard import Snapshot

IMAGES = 4
TOLERANCE = 1e-3
"""Of the largest value of a map: float32 sums in another order differ by far less."""


@check("contract")
def contract(method: Method, pair: Pair) -> Verdict:
    """The same image gives the same map, asked twice and alone as among others; nothing changes."""
    before = Snapshot.of(pair.network)
    together = pair.attribute(method, slice(0, IMAGES), seed=0)
    again = pair.attribute(method, slice(0, IMAGES), seed=0)
    alone = np.concatenate(
        [pair.attribute(method, slice(at, at + 1), seed=0) for at in range(len(together))]
    )
    if change := before.change(pair.network):
        raise MethodError(f"method {method.name!r} on {pair.name} {change}")
    largest = np.abs(together).max(axis=(1, 2)) + np.finfo(np.float32).tiny
    figures = {
        "when_repeated": float((np.abs(again - together).max(axis=(1, 2)) / largest).max()),
        "when_alone": float((np.abs(alone - together).max(axis=(1, 2)) / largest).max()),
    }
    reasons = {
        "when_repeated": "two calls with the same input and seed give different maps",
        "when_alone": "an image's map depends on the other images of its batch "
        "(draw random numbers from `seeds`, one an image)",
    }
    broken = [name for name, figure in figures.items() if figure > TOLERANCE]
    return Verdict(not broken, figures, "; ".join(reasons[name] for name in broken))
