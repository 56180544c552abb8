"""How long the fusion takes: `python benchmarks/fusion.py`."""

from __future__ import annotations

import time

import numpy as np

from attrcheck.metarank import fuse


def best_of(repeats: int, cases: int, methods: int, tolerance: float = 0.0) -> float:
    """Seconds of the fastest of several fusions of random scores."""
    scores = np.random.default_rng(0).normal(size=(cases, methods))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        fuse(scores, tolerance=tolerance)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


if __name__ == "__main__":
    print(f"64 methods x 26 cases: {1e3 * best_of(50, 26, 64):.2f} ms (bound: 5 ms)")
    print(f"1,000 methods x 1,000 cases: {best_of(3, 1000, 1000):.2f} s (bound: 2 s)")
    print(f"... with a tolerance: {best_of(3, 1000, 1000, tolerance=0.1):.2f} s (bound: 2 s)")
