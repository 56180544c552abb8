"""Slow, obvious re-implementations: the oracles that the tests hold the real code against."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np


def fuse(scores, higher_is_better, smoothing=0.5, clip=None, tolerance=0.0):
    """Meta-Rank, pair by pair: (kappa, S, n) as arrays, from the explicit linear system."""
    cases, methods = np.shape(scores)
    wins = np.zeros((methods, methods))
    compared = np.zeros((methods, methods))
    for case in range(cases):
        for i in range(methods):
            for j in range(methods):
                mine, other = scores[case][i], scores[case][j]
                if i == j or math.isnan(mine) or math.isnan(other):
                    continue
                compared[i, j] += 1
                lead = mine - other if higher_is_better[case] else other - mine
                if lead > tolerance:
                    wins[i, j] += 1
                elif lead >= -tolerance:
                    wins[i, j] += 0.5
    equations, results = [np.ones(methods)], [0.0]
    for i in range(methods):
        for j in range(i + 1, methods):
            won, met = wins[i, j], compared[i, j]
            if met == 0:
                continue
            if clip is None:
                odds = (won + smoothing) / (met - won + smoothing)
            else:
                share = min(max(won / met, clip), 1 - clip)
                odds = share / (1 - share)
            equation = np.zeros(methods)
            equation[i], equation[j] = 1, -1
            equations.append(equation)
            results.append(math.log(odds))
    kappa = np.linalg.lstsq(np.array(equations), np.array(results), rcond=None)[0]
    return kappa, wins, compared


def ablation(model, images, labels, maps, seeds, steps, most_relevant_first):
    """Remove pixels one by one into a copy of each image; the label's logit at each step."""
    rows = []
    for image, label, values, seed in zip(images, labels, maps, seeds, strict=True):
        pixels = values.numel()
        place = {
            pixel: at for at, pixel in enumerate(np.random.default_rng(seed).permutation(pixels))
        }
        sign = -1 if most_relevant_first else 1
        order = sorted(range(pixels), key=lambda p: (sign * values.flatten()[p].item(), place[p]))
        left = image.clone()
        removed, row = 0, []
        for k in range(steps + 1):
            while removed < math.floor(Fraction(pixels * k, steps) + Fraction(1, 2)):
                y, x = divmod(order[removed], values.shape[1])
                left[:, y, x] = 0
                removed += 1
            row.append(model(left[None])[0, label].item())
        rows.append(row)
    return {"logit": np.array(rows)}


def area(correct):
    """Trapezoids under the accuracy, one by one."""
    accuracy = correct.mean(axis=0)
    width = 1 / (len(accuracy) - 1)
    return sum(width * (a + b) / 2 for a, b in itertools.pairwise(accuracy))
