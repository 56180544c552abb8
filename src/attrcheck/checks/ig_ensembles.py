"""What ensembles do to integrated gradients, and which protocols notice (Li et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attrcheck.checks import check
from attrcheck.checks._panel import Panel
from attrcheck.contracts import Lab, Pair, Rows, Verdict
from attrcheck.methods.integrated import integrated_gradients
from attrcheck.methods.noise import SOUNDNESS, mean, mean_square, noisy, variance
from attrcheck.protocols import protocol as protocols

PAIR = ("shapes", "resnet")
IMAGES = {"smoke": 8, "default": 100, "full": 1000}
ENOUGH = 100
"""Images below which single ones decide soundness."""
AT_ONCE = 10
"""Images whose twenty noisy copies are attributed together."""
PLAIN = "integrated_gradients"
ENSEMBLES = {"smoothgrad": mean, "smoothgrad_squared": mean_square, "vargrad": variance}
BY_ORDER = ("road_morf", "morf")
BY_VALUE = ("soundness", "completeness")


@check("ig_ensembles", over="suite", default=False)
def ig_ensembles(lab: Lab) -> Verdict:
    """Ensembles are sounder than integrated gradients; only SmoothGrad is more complete.

    ROAD and deletion put the four at most half as far apart as completeness does. Twenty copies
    with noise of .3, as published; soundness in all of its 96 steps. Each lead over integrated
    gradients comes with the interval that holds 95% of those on resampled images: one that spans
    zero says nothing, and then there is no verdict.
    """
    pair = lab.pair(*PAIR, IMAGES[lab.settings.profile])
    maps = maps_of(lab, pair)
    panel = Panel(pair, torch.arange(len(pair.images)), lab.settings.seed)
    counts = lab.resamples(pair)
    figures: dict[str, Any] = {}
    for by in (*BY_VALUE, *BY_ORDER):
        lab.progress(f"ig_ensembles: {by}")
        protocol = protocols.get(by).make("full")
        rows = {name: panel.observe(protocol, of_method) for name, of_method in maps.items()}
        settled = protocol.settle(list(rows.values()))
        scores = {name: settled.reduce(observed).score for name, observed in rows.items()}
        figures |= {f"{by}_{name}": score for name, score in scores.items()}
        figures[f"{by}_range"] = max(scores.values()) - min(scores.values())
        if by in BY_VALUE:
            again = {name: settled.resample(observed, counts) for name, observed in rows.items()}
            for name in ENSEMBLES:
                lead = np.nanquantile(again[name] - again[PLAIN], (0.025, 0.975))
                figures[f"{by}_lead_{name}"] = lead.tolist()
    if len(pair.images) < ENOUGH:
        return Verdict(None, figures, f"{len(pair.images)} images are too few to say")
    return verdict(figures)


def maps_of(lab: Lab, pair: Pair) -> dict[str, Tensor]:
    """Maps of integrated gradients and of its ensembles, from one set of noisy copies; stored."""
    images, labels, seed = pair.images, pair.labels, lab.settings.seed

    def compute() -> Rows:
        parts = []
        for start in range(0, len(images), AT_ONCE):
            part = slice(start, start + AT_ONCE)
            lab.progress(f"ig_ensembles: image {start + 1} of {len(images)}")
            seeds = pair.seeds(part, seed, "ig_ensembles")
            given = pair.network, images[part], labels[part]
            copies = noisy(integrated_gradients, *given, seeds, SOUNDNESS, lambda maps: maps)
            ensembles = {name: statistic(copies) for name, statistic in ENSEMBLES.items()}
            parts.append({PLAIN: integrated_gradients(*given), **ensembles})
        return {name: torch.cat([part[name] for part in parts]).cpu().numpy() for name in parts[0]}

    arrays = lab.keep("ig_ensembles", pair, compute, code=ig_ensembles)
    return {name: torch.from_numpy(arrays[name]).to(images) for name in (PLAIN, *ENSEMBLES)}


def verdict(figures: Mapping[str, Any]) -> Verdict:
    """Passed if all that was published is so beyond chance, failed if any of it is not so."""
    wrong, unclear = [], []
    for by, name in product(BY_VALUE, ENSEMBLES):
        low, high = figures[f"{by}_lead_{name}"]
        ahead = by == "soundness" or name == "smoothgrad"
        lead = f"{by} of {name} less that of {PLAIN} is {low:.3f} to {high:.3f}"
        if not (low > 0 or high < 0):
            unclear.append(lead)
        elif (low > 0) != ahead:
            wrong.append(lead)
    for by in BY_ORDER:
        if figures[f"{by}_range"] > figures["completeness_range"] / 2:
            wrong.append(f"{by} tells them apart by {figures[f'{by}_range']:.3f}")
    reason = "; ".join(wrong or unclear)
    return Verdict(False if wrong else None if unclear else True, figures, reason)
