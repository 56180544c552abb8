"""A method must keep the axioms that it claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.attribution import MethodError, attribute_batch
from attrcheck.checks import Verdict, check
from attrcheck.checks._probes import half_blind, mirrored, rewritten, without_biases
from attrcheck.checks._similarity import Maps
from attrcheck.loading import Setup
from attrcheck.methods import Method
from attrcheck.methods._gradients import background

Errors = NDArray[np.float64]
"""One an image, relative to what is right or to the largest value of its map."""

IMAGES = 8


@check("axioms")
def axioms(method: Method, setup: Setup) -> Verdict:
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
        errors = AXIOMS[name](method, setup)
        figures |= {name: float(np.median(errors)), f"{name}_at_worst": float(errors.max())}
        if not figures[name] <= tolerance:
            reasons.append(f"{name} is missed by {figures[name]:.2%}, claimed {tolerance:.2%}")
    return Verdict(not reasons, figures, "; ".join(reasons))


def completeness(method: Method, setup: Setup) -> Errors:
    """The map sums to f(x) - f(0)."""
    return _sums(method, setup, torch.zeros_like(setup.images[:1]))


def completeness_in_mean(method: Method, setup: Setup) -> Errors:
    """The map sums to f(x) - the mean of f(b), b the first images of the dataset."""
    return _sums(method, setup, background(setup.reference, setup.images))


def conservation(method: Method, setup: Setup) -> Errors:
    """The map sums to f(x)."""
    return _sums(method, setup)


def conservation_without_biases(method: Method, setup: Setup) -> Errors:
    """The map sums to f(x) if the network adds nothing to the signal."""
    return _sums(method, replace(setup, network=without_biases(setup.network)))


def dummy_feature(method: Method, setup: Setup) -> Errors:
    """A pixel that the network does not see is worth nothing."""
    maps = _maps(method, setup, half_blind(setup.dataset))
    return _apart(maps[..., : maps.shape[2] // 2], 0, maps)


def symmetry(method: Method, setup: Setup) -> Errors:
    """Pixels of equal value are worth the same if the network does not tell them apart."""
    even = replace(setup, images=(setup.images + setup.images.flip(3)) / 2)
    maps = _maps(method, even, mirrored(setup.dataset))
    return _apart(maps, maps[..., ::-1], maps)


def implementation_invariance(method: Method, setup: Setup) -> Errors:
    """Networks that compute the same have the same maps."""
    one, other = (_maps(method, setup, network) for network in rewritten(setup.dataset))
    return _apart(one, other, one)


AXIOMS: dict[str, Callable[[Method, Setup], Errors]] = {
    axiom.__name__: axiom
    for axiom in (
        completeness,
        completeness_in_mean,
        conservation,
        conservation_without_biases,
        dummy_feature,
        symmetry,
        implementation_invariance,
    )
}


def _maps(method: Method, setup: Setup, network: nn.Module) -> Maps:
    network = network.eval().to(setup.images.device)
    return attribute_batch(method, replace(setup, network=network), slice(0, IMAGES), seed=0)


def _sums(method: Method, setup: Setup, baselines: Tensor | None = None) -> Errors:
    """How far sums of maps are from f(x) - the mean of f over the baselines."""
    part = slice(0, IMAGES)
    with torch.no_grad():
        wanted = setup.network(setup.images[part])
        if baselines is not None:
            wanted = wanted - setup.network(baselines).mean(0)
    right = wanted.gather(1, setup.labels[part, None])[:, 0].double().cpu().numpy()
    sums = attribute_batch(method, setup, part, seed=0).sum((1, 2), dtype=np.float64)
    return np.asarray(np.abs(sums - right) / np.abs(right))


def _apart(one: Maps, other: Maps | int, maps: Maps) -> Errors:
    """The largest difference of an image, relative to the largest value of its map."""
    largest = np.abs(maps).max((1, 2)) + np.finfo(np.float32).tiny
    return np.asarray(np.abs(one - other).max((1, 2)) / largest, dtype=np.float64)
