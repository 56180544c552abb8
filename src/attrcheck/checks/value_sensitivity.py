"""What a judge sees of a map: its values, or no more than their order (Li et al. 2024)."""

from __future__ import annotations

from itertools import product

import numpy as np
from torch import Tensor

from attrcheck.adapters.metrics import Metric
from attrcheck.checks import check
from attrcheck.checks._curves import Curve, least_apart
from attrcheck.checks._modifications import SCHEMES, modified
from attrcheck.checks._panel import Panel, unit_maps
from attrcheck.checks._rankings import copy_with
from attrcheck.contracts import Lab, Protocol, Verdict
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.updating import Updated

METHODS = ("integrated_gradients", "gradcam", "saliency")
DATASETS = {"smoke": ("shapes",), "default": ("shapes",), "full": ("digits", "shapes")}
"""By profile, each with its resnet."""
IMAGES = {"smoke": 24, "default": 100, "full": 300}
APART = 0.05
"""Distance of two curves from which on they are taken to differ.

It is the standard error of an accuracy of one half on a hundred images, and where the published
figures of judges by order end: three deviations above that of deletion, .019 + 3 * .011.
"""
ENOUGH = 100
"""Images that it takes to see such a distance."""


def draws_curves(protocol: Protocol) -> bool:
    """Whether a changed map can be put before it: one that is not drawn anew, without a mask."""
    other = isinstance(protocol, Metric | Updated)
    return not (other or protocol.tuning or {"masks", "training"} & set(protocol.needs))


@check(
    "value_sensitivity",
    over="protocols",
    fits=draws_curves,
    known_failures={
        "road_morf": "published .014, here .07: shifts that push values into a limit reorder what "
        "ties there, and images this small fall with a few of the pixels that are imputed",
    },
)
def value_sensitivity(lab: Lab, protocol: str) -> Verdict:
    """Three curves, of a map and of two changed ones, differ if values count, else hardly.

    The figure is the smallest Hausdorff distance between two of the three, its mean over methods
    and schemes of change. Published: completeness .503, soundness .183, deletion .019, ROAD .014.
    """
    profile = lab.settings.profile
    judge = protocols.get(protocol).make(profile)
    if hasattr(judge, "normalisation"):
        judge = copy_with(judge, normalisation="clip")  # a changed map is taken at its word
    found: dict[tuple[str, str, str], float] = {}
    for dataset, method in product(DATASETS[profile], METHODS):
        lab.progress(f"value_sensitivity of {protocol}: {method} on {dataset}")
        panel, values = unit_maps(lab, dataset, "resnet", IMAGES[profile], method)
        if not (apart := distances(judge, panel, values)):
            return Verdict(None, {}, "the protocol draws no curve")
        found |= {(dataset, method, scheme): each for scheme, each in apart.items()}
    every = np.array(list(found.values()))
    parts = dict.fromkeys(name for names in found for name in names)
    figures = {
        "hausdorff": float(every.mean()),
        "spread": float(every.std()),
        "error": float(every.std() / np.sqrt(every.size)),
        **{
            part: float(np.mean([found[names] for names in found if part in names]))
            for part in parts
        },
    }
    return verdict(judge.sees, figures, IMAGES[profile])


def distances(judge: Protocol, panel: Panel, values: Tensor) -> dict[str, float]:
    """By scheme, how far the nearest two of the three curves are apart; empty without curves."""

    def curve(maps: Tensor) -> Curve | None:
        return judge.reduce(panel.observe(judge, maps)).curve

    if (own := curve(values)) is None:
        return {}
    found = {}
    for scheme in SCHEMES:
        changed = map(curve, modified(scheme, values, panel.seeds))
        found[scheme] = least_apart([own, *(each for each in changed if each)])
    return found


def verdict(sees: str, figures: dict[str, float], images: int) -> Verdict:
    """Whether the figure, less its standard error, is above the limit where values are seen.

    Chance alone moves the curves of a few images; so it takes many to say that an order moved them.
    """
    least = figures["hausdorff"] - figures["error"]
    told = f"curves are {figures['hausdorff']:.3f} apart, give or take {figures['error']:.3f}"
    if sees == "values":
        reason = f"is said to see values, but its {told}: not surely above {APART}"
        return Verdict(least > APART, figures, "" if least > APART else reason)
    if least > APART and images < ENOUGH:
        return Verdict(None, figures, f"its {told}, and {images} images are too few to say why")
    reason = f"is said to see no more than an order, but its {told}: surely above {APART}"
    return Verdict(least <= APART, figures, "" if least <= APART else reason)
