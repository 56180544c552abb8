"""What a protocol sees of a map: its values, or no more than their order (Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import torch
from torch import Tensor

from attrcheck.adapters.metrics import Metric
from attrcheck.checks import check
from attrcheck.checks._curves import Curve, least_apart
from attrcheck.checks._panel import Panel, unit_maps
from attrcheck.checks._rankings import copy_with
from attrcheck.contracts import Lab, Protocol, Verdict
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.order import ranks_of
from attrcheck.protocols.updating import Updated
from attrcheck.tensors.draws import uniform_draws

IMAGES = {"smoke": 24, "default": 100, "full": 300}
ENOUGH = 100
"""Images that it takes to see that curves are APART."""
BY_VALUE = ("completeness", "soundness")

METHODS = ("integrated_gradients", "gradcam", "saliency")
DATASETS = {"smoke": ("shapes",), "default": ("shapes",), "full": ("digits", "shapes")}
"""By profile, each with its resnet."""
SHIFT = 0.6
SCHEMES = ("constant", "random", "partial")
APART = 0.05
"""Distance of two curves from which on they are taken to differ.

It is the standard error of an accuracy of one half on a hundred images, and where the published
figures of protocols by order end: three deviations above that of deletion, .019 + 3 * .011.
"""

MARGIN_BY_ORDER = ("deletion", "road_morf")
ERRORS = 2
"""Standard errors on each side by which the lowest by value must exceed the highest by order."""

GAMED_PAIR = ("shapes", "resnet")
GAMED_METHOD = "integrated_gradients"
GAMED_BY_ORDER = ("deletion", "ids", "insertion", "lerf", "morf", "road_lerf", "road_morf")
TRANSFORMS: dict[str, Callable[[Tensor], Tensor]] = {
    "plain": lambda values: values,
    "cubed": lambda values: values**3,
    "raised": lambda values: 0.6 + 0.4 * values,
}
DECIMALS = 4
"""Values are rounded first, so that later rounding makes no ties."""


def draws_curves(protocol: Protocol) -> bool:
    """Whether it can score a changed map: it needs no mask, and does not attribute anew."""
    attributes = isinstance(protocol, Metric | Updated) or protocol.arranges
    return not (attributes or protocol.tuning or {"masks", "training"} & set(protocol.needs))


@check("value_sensitivity", over="protocols", fits=draws_curves)
def value_sensitivity(lab: Lab, name: str) -> Verdict:
    """Three curves, of a map and of two changed ones, differ if values count, else hardly.

    The figure is the smallest Hausdorff distance between two of the three, its mean over methods
    and schemes of change. Published: completeness .503, soundness .183, deletion .019, ROAD .014.
    """
    profile = lab.settings.profile
    protocol = protocols.get(name).make(profile)
    if hasattr(protocol, "normalisation"):
        # Changed maps are used as they are.
        protocol = copy_with(protocol, normalisation="clip")
    apart: dict[tuple[str, str, str], float] = {}
    for dataset, method in product(DATASETS[profile], METHODS):
        lab.progress(f"value_sensitivity of {name}: {method} on {dataset}")
        panel, values = unit_maps(lab, dataset, "resnet", IMAGES[profile], method)
        if not (by_scheme := distances(protocol, panel, values)):
            return Verdict(None, {}, "the protocol draws no curve")
        apart |= {(dataset, method, scheme): gap for scheme, gap in by_scheme.items()}
    gaps = np.array(list(apart.values()))
    parts = dict.fromkeys(part for names in apart for part in names)
    figures = {
        "hausdorff": float(gaps.mean()),
        "spread": float(gaps.std()),
        "error": float(gaps.std() / np.sqrt(gaps.size)),
        **{
            part: float(np.mean([gap for names, gap in apart.items() if part in names]))
            for part in parts
        },
    }
    return sensitivity_verdict(protocol.sees, figures, IMAGES[profile])


def distances(protocol: Protocol, panel: Panel, values: Tensor) -> dict[str, float]:
    """By scheme, how far the nearest two of the three curves are apart; empty without curves."""

    def curve(maps: Tensor) -> Curve | None:
        return protocol.reduce(panel.observe(protocol, maps)).curve

    if (unchanged := curve(values)) is None:
        return {}
    gaps = {}
    for scheme in SCHEMES:
        changed = filter(None, map(curve, modified(scheme, values, panel.seeds)))
        gaps[scheme] = least_apart([unchanged, *changed])
    return gaps


def modified(scheme: str, values: Tensor, seeds: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    """Maps [N, H, W] of values in [0, 1] by a scheme of Li et al. 2024: removed, introduced.

    constant: every value shifted by -.6 or +.6. random: each by its own draw from U(-.6, 0) or
    U(0, .6). partial: of P values in rising order, those of rank .6 P to .8 P become 0, or those
    of rank 0 to .4 P become the .8 quantile. Values stay in [0, 1].
    """
    if scheme == "constant":
        return _shifted(values, SHIFT, SHIFT)
    if scheme == "random":
        draws = uniform_draws(seeds, (2, *values.shape[1:])).to(values) * SHIFT
        return _shifted(values, draws[:, 0], draws[:, 1])
    ranks, pixels = ranks_of(values, seeds), values[0].numel()
    high = torch.quantile(values.flatten(1), 0.8, dim=1)[:, None, None]
    fall = (ranks >= 0.6 * pixels) & (ranks <= 0.8 * pixels)
    return values.masked_fill(fall, 0.0), torch.where(ranks <= 0.4 * pixels, high, values)


def _shifted(values: Tensor, down: Tensor | float, up: Tensor | float) -> tuple[Tensor, Tensor]:
    return (values - down).clamp(min=0), (values + up).clamp(max=1)


def sensitivity_verdict(sees: str, figures: dict[str, float], images: int) -> Verdict:
    """Whether the figure, less its standard error, is above the limit where values are seen.

    Chance alone moves the curves of a few images; so it takes many to say that an order moved them.
    """
    least = figures["hausdorff"] - figures["error"]
    gap = f"curves are {figures['hausdorff']:.3f} apart, give or take {figures['error']:.3f}"
    if sees == "values":
        reason = f"is said to see values, but its {gap}: not surely above {APART}"
        return Verdict(least > APART, figures, "" if least > APART else reason)
    if least > APART and images < ENOUGH:
        return Verdict(None, figures, f"its {gap}, and {images} images are too few to say why")
    reason = f"is said to see no more than an order, but its {gap}: surely above {APART}"
    return Verdict(least <= APART, figures, "" if least <= APART else reason)


@check("value_margin", over="suite")
def value_margin(lab: Lab) -> Verdict:
    """Completeness and soundness are more sensitive to values than deletion and ROAD, beyond doubt.

    From the figures of `value_sensitivity`. The margin is the least of the first over the largest
    of the others: published, .183 over .019, almost ten.
    """
    sensitivities = {name: sensitivity(lab, name) for name in (*BY_VALUE, *MARGIN_BY_ORDER)}
    return margin_verdict(sensitivities, IMAGES[lab.settings.profile])


def sensitivity(lab: Lab, protocol: str) -> tuple[float, float]:
    """The distance between curves, and its standard error."""
    figures = lab.verdict(check.get("value_sensitivity"), protocol).figures
    return figures["hausdorff"], figures["error"]


def margin_verdict(sensitivities: dict[str, tuple[float, float]], images: int) -> Verdict:
    """Whether the two groups are apart; chance alone moves the curves of a few images."""
    by_value = [sensitivities[name] for name in BY_VALUE]
    by_order = [sensitivities[name] for name in MARGIN_BY_ORDER]
    lowest = min(distance - ERRORS * error for distance, error in by_value)
    highest = max(distance + ERRORS * error for distance, error in by_order)
    margin = min(distance for distance, _ in by_value) / max(distance for distance, _ in by_order)
    figures = {"margin": margin, **{name: gap for name, (gap, _) in sensitivities.items()}}
    if images < ENOUGH:
        return Verdict(None, figures, f"{images} images are too few to tell them apart")
    reason = f"by values at least {lowest:.3f}, by order at most {highest:.3f}"
    return Verdict(lowest > highest, figures, "" if lowest > highest else reason)


@check("gaming", over="suite")
def gaming(lab: Lab) -> Verdict:
    """Cubing the values of a map lifts its soundness, .6 + .4 a sinks it, and no order changes.

    So a method can win by soundness by merely sharpening the maps of another: published, and true.
    Protocols that see an order give the same score to the last digit. Completeness is reported.
    """
    profile = lab.settings.profile
    panel, values = unit_maps(lab, *GAMED_PAIR, IMAGES[profile], GAMED_METHOD)
    values = values.round(decimals=DECIMALS)
    figures: dict[str, float] = {}
    wrong = []
    for name in (*GAMED_BY_ORDER, *BY_VALUE):
        lab.progress(f"gaming of {name}")
        protocol = protocols.get(name).make(profile)
        rows = {
            how: panel.observe(protocol, transform(values)) for how, transform in TRANSFORMS.items()
        }
        settled = protocol.settle(list(rows.values()))
        scores = {how: settled.reduce(observed).score for how, observed in rows.items()}
        figures |= {f"{name}_{how}": score for how, score in scores.items()}
        if name in GAMED_BY_ORDER and len(set(scores.values())) > 1:
            wrong.append(f"{name} sees more than an order")
    if not figures["soundness_cubed"] > figures["soundness_plain"]:
        wrong.append("cubing does not lift soundness")
    if not figures["soundness_raised"] < figures["soundness_plain"]:
        wrong.append(".6 + .4 a does not sink soundness")
    return Verdict(not wrong, figures, "; ".join(wrong))
