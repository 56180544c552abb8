"""Slow, obvious imputation: one equation a missing pixel, solved directly. And masks to try."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import splu


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


def masks(height, width, seed=0):
    """Kept pixels of all sorts, by name: scattered, blobs, boxes, lines, a few pixels."""
    rng = np.random.default_rng(seed)
    y, x = np.indices((height, width))
    scattered = {
        f"scattered {percent}%": rng.random((height, width)) >= percent / 100
        for percent in (1, 10, 30, 50, 70, 90, 95, 99)
    }
    wave = sum(
        rng.normal()
        * np.cos(2 * np.pi * (rng.normal() * y + rng.normal() * x) / max(height, width))
        for _ in range(20)
    )
    blobs = {
        f"blobs {percent}%": wave > np.quantile(wave, percent / 100) for percent in (10, 50, 90)
    }
    margin = max(1, min(height, width) // 18)
    within = (np.minimum(y, height - 1 - y) >= margin) & (np.minimum(x, width - 1 - x) >= margin)
    shapes = {
        "box": ~within,
        "box kept": within,
        "corner": (y >= height // 2) | (x >= width // 2),
        "two sides": (y == 0) | (x == 0),
        "stripes": y % 2 == 1,
        "wide stripes": x % 8 == 3,
        "chessboard": (y + x) % 2 == 0,
        "lattice": (y % 5 == 2) & (x % 5 == 2),
        "diagonals": (y - x) % 9 == 0,
        "one kept": (y == height // 3) & (x == width // 5),
        "two kept": ((y == 0) & (x == 0)) | ((y == height - 1) & (x == width - 1)),
        "last column kept": x == width - 1,
        "one missing": (y != height // 2) | (x != width // 2),
    }
    return {name: keep for name, keep in {**scattered, **blobs, **shapes}.items() if keep.any()}
