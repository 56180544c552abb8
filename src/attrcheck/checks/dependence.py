"""A map depends on the class and on its own image, not on its batch or on where zero is."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, fx, nn

from attrcheck.checks import check
from attrcheck.checks._similarity import SAME, rank_correlation
from attrcheck.contracts import Dataset, Method, Pair, Verdict
from attrcheck.errors import MethodError
from attrcheck.graph.guard import Snapshot

TOGETHER = 4
"""Images whose maps are made together, and each alone."""
TOLERANCE = 1e-3
"""Of the largest value of a map: float32 sums in another order differ by far less."""
IMAGES = 8
CHANGED = 0.05
"""Of all that maps have: what rounding, behind a kink here and there, does not come to."""
SHIFT = 1.0
"""By how much all values in [0, 1] are lowered, as in the paper."""


@check("contract")
def contract(method: Method, pair: Pair) -> Verdict:
    """The same image gives the same map, asked twice and alone as among others; nothing changes."""
    before = Snapshot.of(pair.given(method))
    together = pair.attribute(method, slice(0, TOGETHER), seed=0)
    again = pair.attribute(method, slice(0, TOGETHER), seed=0)
    alone = np.concatenate(
        [pair.attribute(method, slice(at, at + 1), seed=0) for at in range(len(together))]
    )
    if change := before.change(pair.given(method)):
        raise MethodError(f"method {method.name!r} on {pair.name} {change}")
    largest = np.abs(together).max(axis=(1, 2)) + np.finfo(np.float32).tiny
    figures = {
        "when_repeated": float((np.abs(again - together).max(axis=(1, 2)) / largest).max()),
        "when_alone": float((np.abs(alone - together).max(axis=(1, 2)) / largest).max()),
    }
    reasons = {
        "when_repeated": "two calls with the same input and seed give different maps",
        "when_alone": "an image's map depends on the other images of its batch "
        "(draw random numbers from `seeds`, one per image)",
    }
    broken = [name for name, figure in figures.items() if figure > TOLERANCE]
    return Verdict(not broken, figures, "; ".join(reasons[name] for name in broken))


@check("target_sensitivity")
def target_sensitivity(method: Method, pair: Pair) -> Verdict:
    """The map for the label differs from the map for another class."""
    part = slice(0, IMAGES)
    others = pair.altered("targets", labels=(pair.labels + 1) % pair.dataset.classes)
    likeness = rank_correlation(
        pair.attribute(method, part, seed=0), others.attribute(method, part, seed=0)
    )
    reason = f"maps for two classes have a rank correlation of {likeness:.3f}, above {SAME}"
    figures = {"rank_correlation": likeness}
    return Verdict(likeness <= SAME, figures, reason if likeness > SAME else "")


@check("input_invariance")
def input_invariance(method: Method, pair: Pair) -> Verdict:
    """The map stays as it is when values in [0, 1] are written as [-1, 0] and the network adds 1.

    The dataset says so too, in its mean, so that a reference that is taken from images moves with
    them; one that is zero, whatever zero means, does not (Kindermans et al. 2017).
    """
    other = recoded(pair)
    if reason := method.not_applicable(other.given(method)):
        return Verdict(None, {}, f"with a shift of the input undone in the network: {reason}")
    part = slice(0, IMAGES)
    maps, moved = (some.attribute(method, part, seed=0) for some in (pair, other))
    likeness = rank_correlation(maps, moved)
    change = float(np.abs(moved - maps).sum() / (np.abs(maps).sum() + np.finfo(np.float32).tiny))
    figures = {"rank_correlation": likeness, "change": change}
    if likeness >= SAME and change <= CHANGED:
        return Verdict(True, figures)
    return Verdict(
        False,
        figures,
        f"when pixels have another zero, and the network the same logits, maps change by "
        f"{change:.0%} and have a rank correlation of {likeness:.3f} with those before (where zero "
        "is a reference, take it from the dataset, or say so in `known_failures`)",
    )


def recoded(pair: Pair) -> Pair:
    """The pair with values lowered by SHIFT, and networks that undo it first: equal logits."""

    def lowered(data: Dataset) -> Dataset:
        return replace(data, mean=tuple(mean + SHIFT for mean in data.mean))

    data = lowered(pair.dataset)
    offset = -SHIFT / torch.tensor(data.std)
    return pair.altered(
        "recoded",
        dataset=data,
        whole=lowered(pair.reference),
        network=undoing(pair.network, offset).to(pair.images.device),
        original=undoing(pair.original, offset).to(pair.images.device),
    )


def undoing(network: nn.Module, offset: Tensor) -> nn.Module:
    """A copy whose first layer has a bias that takes an offset from each channel, and no more.

    In the paper the bias of the layer that was first does so, which would be wrong at borders where
    zeros are padded. A convolution is known to all methods that take networks apart.
    """
    channels = len(offset)
    first = nn.Conv2d(channels, channels, 1, groups=channels).eval().requires_grad_(False)
    assert first.bias is not None
    first.weight.fill_(1)
    first.bias.copy_(-offset)
    fresh = copy.deepcopy(network)
    if not isinstance(fresh, fx.GraphModule):
        return nn.Sequential(first, fresh).eval()
    fresh.add_module("undone_shift", first)
    (images,) = (node for node in fresh.graph.nodes if node.op == "placeholder")
    with fresh.graph.inserting_after(images):
        undone = fresh.graph.call_module("undone_shift", (images,))
    images.replace_all_uses_with(undone, delete_user_cb=lambda user: user is not undone)
    fresh.recompile()
    return fresh
