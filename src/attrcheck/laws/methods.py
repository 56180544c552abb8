"""What holds for every method, and what those must keep that claim it, on random networks.

Each law is a function of a method and of a pair of a random network and images of noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck.contracts import Method, Pair
from attrcheck.graph.guard import Snapshot
from attrcheck.graph.probes import doubled, half_blind, mirrored, rewritten, without_biases
from attrcheck.methods.integrated import background

Law: TypeAlias = Callable[[Method, Pair], None]
Maps: TypeAlias = NDArray[np.float32]
CLOSE = 1e-3
"""Of the largest value of a map: float32 sums in another order differ by far less."""


def laws_of(method: Method) -> Iterator[Law]:
    """The laws of all methods, and those of the axioms that this one claims."""
    yield law_every_image_has_a_map
    yield law_the_same_image_has_the_same_map
    yield law_a_map_depends_on_no_other_image
    yield law_attributing_leaves_the_network_alone
    yield from (CLAIMED[name] for name in method.axioms if name in CLAIMED)


def law_every_image_has_a_map(method: Method, pair: Pair) -> None:
    """One finite float per pixel; the engine says what else there is."""
    maps, (count, _, *sides) = _maps(method, pair), pair.images.shape
    assert list(maps.shape) == [count, *sides], f"{count} images have maps {list(maps.shape)}"


def law_the_same_image_has_the_same_map(method: Method, pair: Pair) -> None:
    """Asked twice with the same seeds."""
    _same(_maps(method, pair), _maps(method, pair), "two calls with the same seeds differ")


def law_a_map_depends_on_no_other_image(method: Method, pair: Pair) -> None:
    """In reverse order, and alone, an image has the map that it has among others."""
    data, maps = pair.dataset, _maps(method, pair)
    reverse = replace(
        data, images=data.images[:].flip(0), labels=data.labels.flip(0), ids=data.ids[::-1]
    )
    turned = _maps(method, pair.altered("reverse", dataset=reverse))
    _same(turned[::-1], maps, "in reverse order images have other maps")
    alone = [pair.attribute(method, slice(at, at + 1)) for at in range(len(maps))]
    _same(np.concatenate(alone), maps, "alone an image has another map")


def law_attributing_leaves_the_network_alone(method: Method, pair: Pair) -> None:
    """Weights, mode and hooks are as they were."""
    network = pair.given(method)
    before = Snapshot.of(network)
    _maps(method, pair)
    change = before.change(network)
    assert change is None, f"the method {change}"


def law_it_keeps_completeness(method: Method, pair: Pair) -> None:
    """The map sums to f(x) - f(0)."""
    zero = torch.zeros_like(pair.images[:1])
    _adds_up(method, pair, method.axioms["completeness"], zero)


def law_it_keeps_completeness_in_mean(method: Method, pair: Pair) -> None:
    """The map sums to f(x) - the mean of f(b), b the first images of the dataset."""
    within = method.axioms["completeness_in_mean"]
    _adds_up(method, pair, within, background(pair.reference, pair.images))


def law_it_keeps_conservation(method: Method, pair: Pair) -> None:
    """The map sums to f(x)."""
    _adds_up(method, pair, method.axioms["conservation"])


def law_it_keeps_conservation_without_biases(method: Method, pair: Pair) -> None:
    """The map sums to f(x) if the network adds nothing to the signal."""
    bare = without_biases(pair.given(method))
    altered = pair.altered("no biases", network=bare, original=bare)
    _adds_up(method, altered, method.axioms["conservation_without_biases"])


def law_it_keeps_dummy_feature(method: Method, pair: Pair) -> None:
    """A pixel that the network does not see is worth nothing."""
    maps = _maps_of(method, pair, half_blind(pair.dataset, _seed(pair)))
    unseen = np.array(maps)
    unseen[..., : maps.shape[2] // 2] = 0
    _same(unseen, maps, "unseen pixels have a value", method.axioms["dummy_feature"])


def law_it_keeps_symmetry(method: Method, pair: Pair) -> None:
    """Pixels of equal value are worth the same if the network does not tell them apart."""
    even = pair.altered("even", images=(pair.images + pair.images.flip(3)) / 2)
    maps = _maps_of(method, even, mirrored(pair.dataset, _seed(pair)))
    what = "pixels that the network does not tell apart differ"
    _same(maps[..., ::-1], maps, what, method.axioms["symmetry"])


def law_it_keeps_implementation_invariance(method: Method, pair: Pair) -> None:
    """Networks that compute the same have the same maps."""
    one, other = (_maps_of(method, pair, net) for net in rewritten(pair.dataset, _seed(pair)))
    what = "networks that compute the same have different maps"
    _same(other, one, what, method.axioms["implementation_invariance"])


def law_it_keeps_scaling(method: Method, pair: Pair) -> None:
    """A network whose logits are twice as large has maps that are twice as large."""
    one, other = (_maps_of(method, pair, net) for net in doubled(pair.dataset, _seed(pair)))
    _same(other, 2 * one, "twice the logits are not twice the map", method.axioms["scaling"])


CLAIMED: dict[str, Law] = {
    law.__name__.removeprefix("law_it_keeps_"): law
    for law in (
        law_it_keeps_completeness,
        law_it_keeps_completeness_in_mean,
        law_it_keeps_conservation,
        law_it_keeps_conservation_without_biases,
        law_it_keeps_dummy_feature,
        law_it_keeps_symmetry,
        law_it_keeps_implementation_invariance,
        law_it_keeps_scaling,
    )
}
"""By axiom: one for each that the check `axioms` knows."""


def _maps(method: Method, pair: Pair) -> Maps:
    return pair.attribute(method, slice(0, len(pair.images)))


def _maps_of(method: Method, pair: Pair, network: nn.Module) -> Maps:
    network = network.eval().to(pair.images.device)
    return _maps(method, pair.altered("network", network=network, original=network))


def _seed(pair: Pair) -> int:
    """Another network for other images."""
    return int(pair.images.abs().sum() * 1000) % 2**31


def _adds_up(method: Method, pair: Pair, within: float, baselines: Tensor | None = None) -> None:
    """The sum of a map is f(x) - the mean of f over baselines; relative to its values unsigned."""
    network = pair.given(method)
    with torch.no_grad():
        wanted = network(pair.images)
        if baselines is not None:
            wanted = wanted - network(baselines).mean(0)
    right = wanted.gather(1, pair.labels[:, None])[:, 0].double().cpu().numpy()
    maps = _maps(method, pair).astype(np.float64)
    sums, sizes = maps.sum((1, 2)), np.maximum(np.abs(maps).sum((1, 2)), np.abs(right))
    apart = np.abs(sums - right) / np.maximum(sizes, np.finfo(np.float32).eps)
    worst = int(apart.argmax())
    assert apart[worst] <= within, (
        f"a map sums to {sums[worst]:.4g} instead of {right[worst]:.4g}: "
        f"{apart[worst]:.2%} off, claimed {within:.2%}"
    )


def _same(one: Maps, other: Maps, what: str, within: float = CLOSE) -> None:
    """Largest differences of maps, relative to their largest values."""
    largest = np.abs(other).max((1, 2)) + np.finfo(np.float32).tiny
    apart = float((np.abs(one - other).max((1, 2)) / largest).max())
    assert apart <= within, f"{what} by {apart:.2%} of the largest value, more than {within:.2%}"
