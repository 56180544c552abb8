"""Small worlds to try protocols in, and slow, obvious re-implementations of what they compute."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import torch
from torch import nn

from attrcheck.outcomes import outcome
from attrcheck.protocols import Batch

DATA = Path(__file__).parent / "data"
START, RISE = Fraction(4, 100), Fraction(1, 100)


def batch_of(images, labels, model, seeds=None, **more):
    """Images as a protocol sees them."""
    seeds = tuple(range(len(images))) if seeds is None else seeds
    return Batch(images, labels, seeds, outcome(model, images, labels), **more)


def rows_of(protocol, model, batch, maps):
    """What a protocol observes, what needs no map included."""
    shared = protocol.observe_shared(model, batch)
    return protocol.observe(model, batch, maps, shared)


def linear_model(weight):
    """Two classes: the logit of class 1 is the weighted sum of the pixels, that of class 0 is 0."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(weight.numel(), 2, bias=False))
    with torch.no_grad():
        model[1].weight.copy_(torch.stack([torch.zeros(weight.numel()), weight.flatten()]))
    return model.requires_grad_(False)


@cache
def single_deletion_vectors():
    """The network of the published single deletion, its images and targets, maps and scores."""
    files = [np.load(DATA / f"{name}.npz") for name in ("gradients", "cams", "rise")]
    arrays = {name: torch.from_numpy(file[name]) for file in files for name in file}
    network = nn.Sequential(
        nn.Conv2d(3, 8, 5, 2, 2),
        nn.Tanh(),
        nn.Conv2d(8, 12, 3, 2, 1),
        nn.Softplus(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(12, 4),
    )
    _load(network, arrays, {0: "c1", 2: "features.0", 6: "f"})
    maps = {
        name.removeprefix("attr_"): value[:, 0]
        for name, value in arrays.items()
        if name.startswith("attr_")
    }
    maps["ixg_relu"] = maps["ixg_raw"].clamp(min=0)
    published = dict(np.load(DATA / "single_deletion.npz"))
    return network, arrays["images"], arrays["targets"], maps, published


@cache
def soundness_vectors():
    """The network of the published soundness, its images and labels, maps in [0, 1] and figures."""
    published = dict(np.load(DATA / "soundness.npz"))
    arrays = {name: torch.from_numpy(value) for name, value in published.items()}
    network = nn.Sequential(
        nn.Conv2d(3, 6, 5, padding=2),
        nn.Tanh(),
        nn.Conv2d(6, 8, 3, 2, 1),
        nn.ReLU(),
        nn.AdaptiveMaxPool2d(1),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
    _load(network, arrays, {0: "c1", 2: "c2", 6: "f"})
    ixg, noise = arrays["smap255_ixg"] / 255, arrays["smap255_random"] / 255
    maps = {"ixg": ixg, "ixg_pow3": ixg**3, "ixg_scaled": ixg / 2, "random": noise}
    return network, arrays["images"], arrays["labels"], maps, published


def _load(network, arrays, layers):
    network.eval().requires_grad_(False)
    for place, name in layers.items():
        network[place].weight.copy_(arrays[f"w_{name}.weight"])
        network[place].bias.copy_(arrays[f"w_{name}.bias"])


def rising(values, seed):
    """All pixels of a map [H, W], the least relevant first; ties in the seed's order."""
    values = values.flatten().tolist()
    shuffled = np.random.default_rng(seed).permutation(len(values)).tolist()
    place = {pixel: at for at, pixel in enumerate(shuffled)}
    return sorted(range(len(values)), key=lambda pixel: (values[pixel], place[pixel]))


def rounded(pixels, share):
    """So many pixels, halves rounded up."""
    return math.floor(pixels * share + Fraction(1, 2))


def ablation(model, images, labels, maps, seeds, at, of, most_relevant_first):
    """Remove pixels one by one into a copy of each image; the label's logit at each step."""
    rows = []
    for image, label, values, seed in zip(images, labels, maps, seeds, strict=True):
        order = rising(values, seed)
        if most_relevant_first:
            order.reverse()
        left = image.clone()
        removed, row = 0, []
        for k in at:
            while removed < rounded(values.numel(), Fraction(k, of)):
                y, x = divmod(order[removed], values.shape[1])
                left[:, y, x] = 0
                removed += 1
            row.append(model(left[None])[0, label].item())
        rows.append(row)
    return {"logit": np.array(rows)}


def area(heights, places):
    """Trapezoids over the places, one by one, over the width of all."""
    total = sum(
        (right - left) * (a + b) / 2
        for (left, right), (a, b) in zip(
            itertools.pairwise(places), itertools.pairwise(heights), strict=True
        )
    )
    return total / (places[-1] - places[0])


def inserted(model, images, labels, maps, seeds, percent):
    """Soundness, step by step: is the model right, and what attribution has been included?

    Maps in [0, 1]; what has not been inserted is 0.
    """
    correct, included = [], []
    for image, label, values, seed in zip(images, labels, maps, seeds, strict=True):
        order = rising(values, seed)
        row, sums = [], []
        for share in percent:
            kept = order[rounded(values.numel(), Fraction(share, 100)) :]
            left = torch.zeros_like(image)
            for pixel in kept:
                y, x = divmod(pixel, values.shape[1])
                left[:, y, x] = image[:, y, x]
            row.append(bool(model(left[None])[0].argmax() == label))
            sums.append(math.fsum(values.flatten()[pixel].item() for pixel in kept))
        correct.append(row)
        included.append(sums)
    return np.array(correct), np.array(included)


def sound(correct, included, start=START, late=False, strict=True):
    """The curve q, image by image. `late`: q before what is false is updated. strict: < and not <=.

    As published it is late, and not strict.
    """
    images, steps = correct.shape
    false = [0.0] * images
    q, before = [], Fraction(0)
    for k in range(steps):
        accuracy = Fraction(int(correct[:, k].sum()), images)
        gain = accuracy - before
        stalls = (gain < RISE if strict else gain <= RISE) and accuracy > start
        added = [included[i, k] - (included[i, k - 1] if k else 0) for i in range(images)]
        updated = [false[i] + (added[i] if stalls else 0) for i in range(images)]
        known = false if late else updated
        shares = [
            (included[i, k] - known[i]) / included[i, k]
            for i in range(images)
            if included[i, k] > 0
        ]
        q.append(math.fsum(shares) / len(shares) if shares else math.nan)
        false, before = updated, accuracy
    return np.array(q)


def mean_along(accuracy, q, start, level, points=100_000):
    """The mean of q over accuracies from start to level, on the best accuracy so far."""
    best, places, heights = -1.0, [], []
    for a, value in zip(accuracy, q, strict=True):
        if a > best and not math.isnan(value):
            best = a
            places.append(a)
            heights.append(value)
    levels = [start + (level - start) * k / points for k in range(points + 1)]
    return float(np.mean([_read(places, heights, at) for at in levels]))


def _read(places, heights, at):
    """A broken line, level beyond its ends."""
    if at <= places[0]:
        return heights[0]
    for (left, right), (a, b) in zip(
        itertools.pairwise(places), itertools.pairwise(heights), strict=True
    ):
        if at <= right:
            return a + (b - a) * (at - left) / (right - left)
    return heights[-1]
