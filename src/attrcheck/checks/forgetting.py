"""A map changes when the model forgets what it has learnt, or has learnt what is not true."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from attrcheck.checks import check
from attrcheck.checks._checkpoints import turned_back
from attrcheck.checks._similarity import Maps, complexity, rank_correlation, ssim
from attrcheck.contracts import Method, Pair, Verdict
from attrcheck.store.seeds import derive
from attrcheck.tensors.draws import normal_draws
from attrcheck.training.weights import SHUFFLED, weights_path

IMAGES, FEW_IMAGES = 8, 4
POINTS, FEW_POINTS = 5, 3
"""How many of the layers are looked at, from the logits to the image; the middle is one of them."""
COSTLY = 100
"""Forward passes per map above which a few images and points must do."""
UNMOVED = 0.75
"""Rank correlation above which the weights hardly mattered.

Set after a look at the figures: with the upper half of the layers random, guided backpropagation
stays at .82 to .95 in the embedded models (.74 on digits-inception, which it therefore passes);
every other of the first nine methods fell to .71 or below.
"""
NO_WEIGHTS = Verdict(None, {}, "the model has no weights that could be random")

RISE = 0.01
"""By how much the complexity of maps must rise, give or take ERRORS standard errors."""
ERRORS = 2
LEAST_RISES = 4
"""Images whose maps are constant neither before nor after that it takes for a verdict."""
BINS = 100
FULL = 0.93
"""Of the greatest complexity, log(BINS), above which there is no room for a rise.

A map that is enlarged from a few cells takes all values between them: on digits-resnet, those of
FullGrad and the CAM family are at .94 and above, and those of all other methods at .92 or below.
"""

SAMPLES, FEW_SAMPLES = 8, 4
"""Copies of an image whose maps are averaged; the last has no noise. The paper has 50."""
NOISE = 0.1
"""The standard deviation of the noise, as a share of the image's range."""


@check("randomisation")
def randomisation(method: Method, pair: Pair) -> Verdict:
    """The map changes when the upper half of the layers, nearest to the logits, forgets.

    Curves at `layers`, counted from the logits: all up to there random (cascading), or that one
    alone (independent). The verdict is that of the cascade half way down (Adebayo et al. 2018).
    """
    names, costly = layers(pair.given(method)), method.cost > COSTLY
    if not names:
        return NO_WEIGHTS
    part = slice(0, FEW_IMAGES if costly else IMAGES)
    points = counted(len(names), FEW_POINTS if costly else POINTS)
    halfway = points.index(max(1, len(names) // 2))

    def forgetting(chosen: list[str]) -> Maps:
        return forgetful(pair, method, chosen).attribute(method, part, seed=0)

    intact = pair.attribute(method, part, seed=0)
    cascading = [forgetting(names[:count]) for count in points]
    independent = [cascading[0], *(forgetting([names[count - 1]]) for count in points[1:])]
    figures: dict[str, float | list[float]] = {"layers": list(map(float, points))}
    for kind, curve in {"cascading": cascading, "independent": independent}.items():
        for measure in (rank_correlation, ssim):
            figures[f"{kind}_{measure.__name__}"] = [measure(intact, maps) for maps in curve]
    likeness = rank_correlation(intact, cascading[halfway])
    figures["rank_correlation"] = likeness
    return moved(likeness, figures, "with random upper layers")


@check("emprt")
def emprt(method: Method, pair: Pair) -> Verdict:
    """Maps grow more complex when all layers forget (efficient MPRT, Hedstroem et al. 2024).

    The rise of an image is (h' - h) / h, h and h' being the entropies of the histograms of its map,
    in 100 bins, before and after. Nothing is compared pixel by pixel.
    """
    names, part = layers(pair.given(method)), slice(0, IMAGES)
    if not names:
        return NO_WEIGHTS
    before, after = (
        complexity(some.attribute(method, part, seed=0), BINS)
        for some in (pair, forgetful(pair, method, names))
    )
    return risen(before, after)


def risen(before: NDArray[np.float64], after: NDArray[np.float64]) -> Verdict:
    """Whether the complexity of maps has risen; None where it was as great as can be.

    A map that is constant with random layers has changed, but says nothing of a rise.
    """
    if not before.any():
        return Verdict(False, {}, "its maps are constant, which has no complexity that could rise")
    defined = (before > 0) & (after > 0)
    if defined.sum() < LEAST_RISES:
        told = f"with random layers {defined.sum()} of {len(defined)} maps are not constant"
        return Verdict(None, {}, f"{told}, and it takes {LEAST_RISES} to see a rise")
    before, after = before[defined], after[defined]
    rises = after / before - 1
    error = float(rises.std(ddof=1) / np.sqrt(len(rises)))
    figures = {
        "rise": float(rises.mean()),
        "error": error,
        "before": float(before.mean()),
        "after": float(after.mean()),
        "constant": int((~defined).sum()),
    }
    if rises.any() and figures["before"] > FULL * np.log(BINS):
        share = figures["before"] / np.log(BINS)
        return Verdict(None, figures, f"its maps have {share:.0%} of the greatest complexity")
    low = figures["rise"] + ERRORS * error < RISE
    reason = (
        f"with random layers the complexity of its maps rises by {figures['rise']:.1%}, "
        f"give or take {ERRORS * error:.1%}: surely less than {RISE:.0%}"
    )
    return Verdict(not low, figures, reason if low else "")


@check("smprt")
def smprt(method: Method, pair: Pair) -> Verdict:
    """Maps averaged over noisy copies change when layers forget (smooth MPRT, Hedstroem 2024).

    Absolute values of the averages are compared. Curves at `layers`, counted from the image up, as
    upper layers that forget leave what lower ones pass on. The verdict is that of all layers.
    """
    names, costly = layers(pair.given(method))[::-1], method.cost > COSTLY
    if not names:
        return NO_WEIGHTS
    part = slice(0, FEW_IMAGES)
    points = [len(names)] if costly else counted(len(names), FEW_POINTS)[1:]
    copies = noisy(pair, part, FEW_SAMPLES if costly else SAMPLES)

    def smooth(some: Pair) -> Maps:
        maps = [some.attribute(method, part, seed=0, images=images) for images in copies]
        return np.asarray(np.abs(np.mean(maps, axis=0)))

    intact = smooth(pair)
    curve = [
        rank_correlation(intact, smooth(forgetful(pair, method, names[:count]))) for count in points
    ]
    figures = {
        "layers": list(map(float, points)),
        "bottom_up_rank_correlation": curve,
        "rank_correlation": curve[-1],
    }
    return moved(curve[-1], figures, "with random layers, averaged over noise,")


def noisy(pair: Pair, part: slice, copies: int) -> list[Tensor]:
    """Copies of images with normal noise, relative to each one's range; the last has none."""
    images = pair.images[part]
    ranges = images.amax((1, 2, 3), keepdim=True) - images.amin((1, 2, 3), keepdim=True)
    seeds = [pair.seeds(part, 0, "noise", str(number)) for number in range(copies - 1)]
    draws = [normal_draws(some, tuple(images.shape[1:])).to(images) for some in seeds]
    return [*(images + NOISE * ranges * draw for draw in draws), images]


@check("data_randomisation")
def data_randomisation(method: Method, pair: Pair) -> Verdict:
    """The map differs from that of a model that learnt shuffled labels by heart (Adebayo 2018).

    For embedded models whose weights of that kind ship with the package.
    """
    if not weights_path(pair.dataset.name, pair.model, SHUFFLED).exists():
        return Verdict(None, {}, f"no {pair.name} that was trained on shuffled labels is at hand")
    part = slice(0, IMAGES)
    maps, others = (
        some.attribute(method, part, seed=0) for some in (pair, turned_back(pair, SHUFFLED))
    )
    likeness, sizes = rank_correlation(maps, others), rank_correlation(abs(maps), abs(others))
    figures = {"rank_correlation": likeness, "absolute_rank_correlation": sizes}
    return moved(likeness, figures, "for a model that was trained on shuffled labels")


def moved(likeness: float, figures: Mapping[str, Any], when: str) -> Verdict:
    """Whether maps are no longer alike."""
    kept = likeness > UNMOVED
    reason = f"{when} the rank correlation is still {likeness:.3f}, above {UNMOVED}"
    return Verdict(not kept, figures, reason if kept else "")


def forgetful(pair: Pair, method: Method, chosen: Sequence[str]) -> Pair:
    """The pair with random weights in some layers of the network that the method gets."""
    network = randomised(pair.given(method), chosen)
    return pair.altered("network", network=network, original=network)


def layers(network: nn.Module) -> list[str]:
    """The parts that have weights of their own, from the logits to the image.

    In the order in which a graph uses them, else in that in which they are listed.
    """
    owners = dict.fromkeys(name.rpartition(".")[0] for name, _ in network.named_parameters())
    if isinstance(network, fx.GraphModule):
        used = [str(node.target) for node in network.graph.nodes]
        places = {owner: min(_places(owner, used), default=len(used)) for owner in owners}
        return sorted(owners, key=lambda owner: places[owner])[::-1]
    return list(owners)[::-1]


def _places(owner: str, used: list[str]) -> list[int]:
    """Where a graph calls a part, one that holds it, or asks for its weights."""
    return [
        place
        for place, target in enumerate(used)
        if f"{owner}.".startswith(f"{target}.") or target.rpartition(".")[0] == owner
    ]


def counted(layers: int, points: int) -> list[int]:
    """Counts of layers from one to all in even steps, rounded down; in between, half of them."""
    return list(dict.fromkeys(max(1, layers * at // (points - 1)) for at in range(points)))


def randomised(network: nn.Module, chosen: Collection[str], seed: int = 0) -> nn.Module:
    """A copy in which the weights of chosen parts are noise of the mean and spread they had."""
    fresh = copy.deepcopy(network)
    with torch.no_grad():
        for name, weight in fresh.named_parameters():
            if name.rpartition(".")[0] in chosen:
                generator = torch.Generator().manual_seed(derive(seed, name))
                noise = torch.randn(weight.shape, generator=generator).to(weight)
                spread = weight.std() if weight.numel() > 1 else weight.abs()
                weight.copy_(weight.mean() + spread * noise)
    return fresh
