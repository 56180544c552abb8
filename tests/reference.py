"""Slow, obvious re-implementations: the oracles that the tests hold the real code against."""

from __future__ import annotations

import math

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
