"""How a large case is reduced: `python benchmarks/scale.py 50000x40 morf deletion sds soundness`.

Simulated rows of IMAGES x METHODS go the way of rows that were observed: settled, reduced,
resampled, condensed and made into text for the controller. Each protocol has a process of its own,
so that its peak of memory is its own; simulating is not counted in the seconds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping

import numpy as np

from attrcheck.contracts import Protocol, Rows
from attrcheck.engine.resampling import condense, interval, replicates
from attrcheck.engine.results import CaseResult, Curve, Outcome
from attrcheck.engine.wire import dumps
from attrcheck.protocols import protocol as protocols

SIZE = "50000x40"
NAMES = ("morf", "deletion", "sds", "soundness")


def steps(rng: np.random.Generator, images: int, count: int, skill: float) -> Rows:
    """Responses at so many steps: the better the method, the sooner they fall."""
    falling = np.linspace(1, 0, count) ** (1 + skill)
    noise = rng.random((images, count), dtype=np.float32)
    return {
        "correct": noise < falling,
        "probability": (noise * falling).astype(np.float32),
        "logit": (noise * 10 * falling).astype(np.float32),
    }


def simulate(protocol: Protocol, images: int, methods: int) -> dict[str, Rows]:
    """Rows of every method, as the protocol observes them."""
    rng = np.random.default_rng(0)
    rows: dict[str, Rows] = {}
    drops = {f"drop_{name}": rng.normal(size=(images, 16)) for name in ("logit", "probability")}
    for number in range(methods):
        name, skill = f"method_{number}" if number else "random", number / methods
        kind = type(protocol).__name__
        if kind == "SingleDeletion":
            attribution = drops["drop_logit"] * skill + rng.normal(size=(images, 16))
            # As read from the store: every method has arrays of its own.
            rows[name] = {
                "attribution": attribution,
                **{key: drop.copy() for key, drop in drops.items()},
            }
        elif kind == "Soundness":
            count = len(protocol.percent)  # type: ignore[attr-defined]
            shares = rng.random((images, count), dtype=np.float32)
            responses = steps(rng, images, count, skill)
            rows[name] = {
                **{key: row[:, ::-1].copy() for key, row in responses.items()},
                "included": shares.cumsum(axis=1),
                "chance": np.full(images, 0.001),
            }
        else:
            count = len(protocol.at)  # type: ignore[attr-defined]
            rows[name] = steps(rng, images, count, skill)
    return rows


def reduce(protocol: Protocol, rows: Mapping[str, Rows], images: int) -> str:
    """The text that crosses to the controller."""
    protocol = protocol.settle(list(rows.values()))
    reductions = {name: protocol.reduce(some) for name, some in rows.items()}
    scores = replicates(protocol, rows, reductions, images, 0, "simulated-network")
    outcomes = {}
    for name, reduction in reductions.items():
        low, high = interval(scores[name])
        curve = Curve.of(reduction.curve)
        outcomes[name] = Outcome(
            "ok", "", reduction.score, low, high, curve, replicates=scores[name]
        )
    better = protocol.higher_is_better
    return dumps(condense(CaseResult("simulated-network-x", better, images, 0.9, outcomes)))


def measure(name: str, images: int, methods: int) -> str:
    """One line: the seconds and the peak of memory of a case."""
    protocol = protocols.get(name).make("default")
    rows = simulate(protocol, images, methods)
    held = sum(row.nbytes for some in rows.values() for row in some.values()) / 2**20
    start, spent = time.perf_counter(), time.process_time()
    text = reduce(protocol, rows, images)
    seconds, spent = time.perf_counter() - start, time.process_time() - spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{name}: {images} images x {methods} methods: {seconds:.1f} s ({spent:.1f} of the "
        f"processor), peak {peak:.0f} MB (rows {held:.0f} MB), {len(text) / 1e6:.1f} MB sent"
    )


if __name__ == "__main__":
    if "SCALE" in os.environ:
        print(measure(sys.argv[2], *map(int, sys.argv[1].split("x"))), flush=True)
    else:
        size, *names = sys.argv[1:] or (SIZE,)
        for chosen in names or NAMES:
            command = [sys.executable, __file__, size, chosen]
            subprocess.run(command, env={**os.environ, "SCALE": "1"}, check=True)
