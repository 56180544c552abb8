"""A method must keep the axioms that it claims."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.checks import check
from attrcheck.checks._similarity import Maps
from attrcheck.contracts import Method, Pair, Verdict
from attrcheck.errors import MethodError
from attrcheck.graph.probes import doubled, half_blind, mirrored, rewritten, without_biases
from attrcheck.methods.integrated import background

Errors = NDArray[np.float64]
"""One per image, relative to what is right or to the largest value of its map."""

IMAGES = 8


@check("axioms")
def axioms(method: Method, pair: Pair) -> Verdict:
    """The median error over images is within what the method claims for each of its axioms."""
    if not method.axioms:
        return Verdict(None, {}, "it claims none")
    if unknown := [name for name in method.axioms if name not in AXIOMS]:
        raise MethodError(
            f"method {method.name!r} claims {', '.join(unknown)}, which no check knows; "
            f"there are: {', '.join(AXIOMS)}"
        )
    figures: dict[str, float] = {}
    reasons = []
    for name, tolerance in method.axioms.items():
        errors = AXIOMS[name](method, pair)
        figures |= {name: float(np.median(errors)), f"{name}_at_worst": float(errors.max())}
        if not figures[name] <= tolerance:
            reasons.append(f"{name} is missed by {figures[name]:.2%}, claimed {tolerance:.2%}")
    return Verdict(not reasons, figures, "; ".join(reasons))


def completeness(method: Method, pair: Pair) -> Errors:
    """The map sums to f(x) - f(0)."""
    return _sums(method, pair, torch.zeros_like(pair.images[:1]))


def completeness_in_mean(method: Method, pair: Pair) -> Errors:
    """The map sums to f(x) - the mean of f(b), b the first images of the dataset."""
    return _sums(method, pair, background(pair.reference, pair.images))


def conservation(method: Method, pair: Pair) -> Errors:
    """The map sums to f(x)."""
    return _sums(method, pair)


def conservation_without_biases(method: Method, pair: Pair) -> Errors:
    """The map sums to f(x) if the network adds nothing to the signal."""
    bare = without_biases(pair.given(method))
    return _sums(method, pair.altered("no biases", network=bare, original=bare))


def dummy_feature(method: Method, pair: Pair) -> Errors:
    """A pixel that the network does not see is worth nothing."""
    maps = _maps(method, pair, half_blind(pair.dataset))
    return _apart(maps[..., : maps.shape[2] // 2], 0, maps)


def symmetry(method: Method, pair: Pair) -> Errors:
    """Pixels of equal value are worth the same if the network does not tell them apart."""
    even = pair.altered("even", images=(pair.images + pair.images.flip(3)) / 2)
    maps = _maps(method, even, mirrored(pair.dataset))
    return _apart(maps, maps[..., ::-1], maps)


def implementation_invariance(method: Method, pair: Pair) -> Errors:
    """Networks that compute the same have the same maps."""
    one, other = (_maps(method, pair, network) for network in rewritten(pair.dataset))
    return _apart(one, other, one)


def scaling(method: Method, pair: Pair) -> Errors:
    """A network whose logits are twice as large has maps that are twice as large."""
    one, other = (_maps(method, pair, network) for network in doubled(pair.dataset))
    return _apart(other, 2 * one, other)


AXIOMS: dict[str, Callable[[Method, Pair], Errors]] = {
    axiom.__name__: axiom
    for axiom in (
        completeness,
        completeness_in_mean,
        conservation,
        conservation_without_biases,
        dummy_feature,
        symmetry,
        implementation_invariance,
        scaling,
    )
}


def _maps(method: Method, pair: Pair, network: nn.Module) -> Maps:
    network = network.eval().to(pair.images.device)
    altered = pair.altered("network", network=network, original=network)
    return altered.attribute(method, slice(0, IMAGES), seed=0)


def _sums(method: Method, pair: Pair, baselines: Tensor | None = None) -> Errors:
    """How far sums of maps are from f(x) - the mean of f over the baselines."""
    part = slice(0, IMAGES)
    with torch.no_grad():
        network = pair.given(method)
        wanted = network(pair.images[part])
        if baselines is not None:
            wanted = wanted - network(baselines).mean(0)
    right = wanted.gather(1, pair.labels[part, None])[:, 0].double().cpu().numpy()
    sums = pair.attribute(method, part, seed=0).sum((1, 2), dtype=np.float64)
    return np.asarray(np.abs(sums - right) / np.abs(right))


def _apart(one: Maps, other: Maps | int, maps: Maps) -> Errors:
    """The largest difference of an image, relative to the largest value of its map."""
    largest = np.abs(maps).max((1, 2)) + np.finfo(np.float32).tiny
    return np.asarray(np.abs(one - other).max((1, 2)) / largest, dtype=np.float64)
