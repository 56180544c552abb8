"""Oracles: slow, obvious re-implementations that the tests hold the real code against."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import torch
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu


def plain_gradient(network, images, targets):
    """df/dx, channels kept."""
    inputs = images.clone().requires_grad_()
    network(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad


def integrated_gradients(network, images, targets, steps=50):
    """x times the weighted sum of gradients at the nodes of Gauss and Legendre, node by node."""
    nodes, weights = np.polynomial.legendre.leggauss(steps)
    total = torch.zeros_like(images)
    for node, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        total += float(weight) * plain_gradient(network, float(node) * images, targets)
    return (images * total).sum(1)


def dense(linear, shape):
    """The matrix [outputs, inputs] of a linear map of one image, column by column."""
    columns = []
    for place in range(int(np.prod(shape))):
        unit = torch.zeros(int(np.prod(shape)))
        unit[place] = 1
        columns.append(linear(unit.view(1, *shape)).flatten())
    return torch.stack(columns, 1).double().numpy()


def share_by_sign(matrix, bias, x, relevance):
    """Relevance of every input: each output's goes to the contributions of its own sign."""
    shared = np.zeros_like(x)
    for row, shift, amount in zip(matrix, bias, relevance, strict=True):
        contributions = row * x
        sign = 1 if contributions.sum() + shift >= 0 else -1
        wanted = np.where(contributions * sign > 0, contributions, 0)
        total = wanted.sum() + (shift if shift * sign > 0 else 0)
        if total:
            shared += wanted / total * amount
    return shared


def change(model, images):
    """f(x) - f(0), for all classes."""
    with torch.no_grad():
        return model(images) - model(torch.zeros_like(images[:1]))


def of(rows, targets):
    """Each row at its target."""
    return rows.gather(1, targets[:, None])[:, 0]


START, RISE = Fraction(4, 100), Fraction(1, 100)


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


def system(image, keep):
    """(A, b) of A x = b: the equations of the missing pixels, row by row; a column a channel."""
    channels, height, width = image.shape
    missing = [(y, x) for y in range(height) for x in range(width) if not keep[y, x]]
    number = {pixel: i for i, pixel in enumerate(missing)}
    entries = {}
    right = np.zeros((len(missing), channels))
    for (y, x), row in number.items():
        entries[row, row] = 0.0
        for dy, dx in itertools.product((-1, 0, 1), repeat=2):
            near = (y + dy, x + dx)
            if (dy, dx) == (0, 0) or not (0 <= near[0] < height and 0 <= near[1] < width):
                continue
            weight = 1 / 6 if 0 in (dy, dx) else 1 / 12
            entries[row, row] += weight
            if near in number:
                entries[row, number[near]] = -weight
            else:
                right[row] += weight * image[:, near[0], near[1]]
    places = np.array(list(entries), dtype=int).reshape(-1, 2).T
    matrix = csc_matrix((list(entries.values()), tuple(places)), shape=(len(missing),) * 2)
    return matrix, right


def impute(image, keep):
    """The image [C, H, W] in float64, its pixels where `keep` [H, W] is false solved for."""
    filled = np.array(image, dtype=np.float64)
    keep = np.asarray(keep, dtype=bool)
    if not keep.all():
        matrix, right = system(filled, keep)
        filled[:, ~keep] = splu(matrix).solve(right).T
    return filled


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


def intervals(
    scores, groups, higher_is_better, clip=None, tolerance=0.0, samples=1000, level=0.95, seed=0
):
    """Intervals of Meta-Rank (low, high) from scores [cases, methods, R], sample by sample."""
    names = sorted(set(groups))
    rng = np.random.default_rng(seed)
    drawn = rng.integers(len(names), size=(samples, len(names)))
    replicate = rng.integers(scores.shape[2], size=drawn.shape)
    kappas = []
    for chosen, at in zip(drawn, replicate, strict=True):
        cases = [
            (case, row)
            for group, row in zip(chosen, at, strict=True)
            for case in range(len(scores))
            if groups[case] == names[group]
        ]
        sample = np.array([scores[case, :, row] for case, row in cases])
        directions = [higher_is_better[case] for case, _ in cases]
        kappa, _, compared = fuse(sample, directions, clip=clip, tolerance=tolerance)
        steps = np.linalg.matrix_power((compared > 0) + np.eye(len(kappa)), len(kappa))
        if (steps > 0).all():
            kappas.append(kappa)
    if len(kappas) < samples / 4:
        return np.full((2, scores.shape[1]), np.nan)
    return np.quantile(kappas, [(1 - level) / 2, (1 + level) / 2], axis=0)


def ssim(one, other, window=7, c1=0.01**2, c2=0.03**2):
    """Structural similarity of two maps in [0, 1], window by window."""
    height, width = one.shape
    down, right = min(window, height), min(window, width)
    found = []
    for y in range(height - down + 1):
        for x in range(width - right + 1):
            a = one[y : y + down, x : x + right].ravel()
            b = other[y : y + down, x : x + right].ravel()
            (var_a, cov), (_, var_b) = np.cov(a, b, bias=True)
            found.append(
                (2 * a.mean() * b.mean() + c1)
                * (2 * cov + c2)
                / ((a.mean() ** 2 + b.mean() ** 2 + c1) * (var_a + var_b + c2))
            )
    return float(np.mean(found))
