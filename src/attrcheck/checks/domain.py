"""How far each removal takes images out of what a model knows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from attrcheck.checks import check
from attrcheck.contracts import Lab, Pair, Verdict
from attrcheck.protocols.order import least, pixel_counts
from attrcheck.protocols.responses import answers, stacked
from attrcheck.removal import removal as removals
from attrcheck.tensors.draws import shuffles

PAIRS = (("digits", "resnet"), ("shapes", "vit"))
IMAGES = 40
AT, OF = (1, 3, 5, 7, 9), 10
"""The fractions of the pixels that are taken away."""
IMPUTED, PLAIN = "noisy_linear", "mean"


@check("out_of_domain", over="suite")
def out_of_domain(lab: Lab) -> Verdict:
    """Imputed pixels leave images closer to what models know than constant ones (ROAD).

    The figure of a removal is the share of the accuracy that is lost as random pixels go, mean over
    a tenth to nine tenths of them: every removal takes the same ones, so what one loses more than
    another is not for want of evidence.
    """
    lost: dict[str, list[float]] = {name: [] for name in removals if removals.is_built_in(name)}
    for dataset, model in PAIRS:
        lab.progress(f"removals on {dataset}-{model}")
        pair = lab.pair(dataset, model, IMAGES)
        for name, losses in lost.items():
            losses.append(share_lost(pair, name, lab.settings.seed))
    figures = {name: float(np.mean(losses)) for name, losses in lost.items()}
    gain = figures[PLAIN] - figures[IMPUTED]
    reason = f"{IMPUTED} loses {figures[IMPUTED]:.0%} of the accuracy, {PLAIN} {figures[PLAIN]:.0%}"
    return Verdict(gain > 0, figures, "" if gain > 0 else reason)


def share_lost(pair: Pair, removal: str, seed: int) -> float:
    """The share of the accuracy that goes with random pixels, mean over fractions."""
    batch = pair.batch(slice(0, IMAGES), seed, {})
    images, labels = batch.images, batch.labels
    order = random_ranks(images, batch.seeds)
    remove = removals.get(removal).of(images, batch.seeds)
    counts = pixel_counts(order[0].numel(), AT, OF)
    keeps = (torch.ones_like(order, dtype=torch.bool), *(~least(order, count) for count in counts))
    steps = (answers(pair.predictor, remove(keep), labels) for keep in keeps)
    intact, *left = stacked(steps)["correct"].mean(axis=0).tolist()
    return 1 - float(np.mean(left)) / float(intact)


def random_ranks(images: Tensor, seeds: tuple[int, ...]) -> Tensor:
    """A random order of the pixels of each image, [N, H, W]."""
    return shuffles(seeds, images[0, 0].numel()).view_as(images[:, 0]).to(images.device)
