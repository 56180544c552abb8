"""The order of images: a shuffle in which every prefix is a fair sample of the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from attrcheck.store.seeds import derive

Indices = NDArray[np.int64]


def places(
    labels: Indices, draw: Callable[[Indices, str], NDArray[np.float64]]
) -> NDArray[np.float64]:
    """Where every image stands, from 0 to 1: the members of each class are dealt out evenly.

    `draw(members, purpose)` gives a number from 0 to 1 for each, first to shuffle a class (`order`)
    and then to put its members somewhere in their stretch (`place`).
    """
    place = np.empty(len(labels))
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        shuffled = members[np.argsort(draw(members, "order"), kind="stable")]
        place[shuffled] = (np.arange(len(members)) + draw(shuffled, "place")) / len(members)
    return place


def fair_order(labels: Sequence[int], ids: Sequence[str]) -> list[int]:
    """Indices in an order that the ids alone decide, the same on every machine."""

    def draw(members: Indices, purpose: str) -> NDArray[np.float64]:
        return np.array([derive(0, ids[index], purpose) / 2**63 for index in members])

    order = np.argsort(places(np.asarray(labels, dtype=np.int64), draw), kind="stable")
    return [int(index) for index in order]
