"""Slow, obvious re-implementations of what checks compute."""

import numpy as np


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
