"""How a run closes, by its size: `python benchmarks/closing.py 2000x64 200x2000`.

Simulated results of CASES x METHODS go the whole way: sent as text, taken by the session, fused,
laid out and written. Each size has a process of its own, so that its peak of memory is its own.
Simulating is not counted; `send` is spread over the workers of a run, all else is the controller's.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from attrcheck.engine.resampling import RESAMPLES, condense, interval
from attrcheck.engine.results import CaseResult, Curve, Envelope, Outcome, RunSettings
from attrcheck.engine.wire import dumps
from attrcheck.plugin.conclusion import conclude, details, keep, publish
from attrcheck.plugin.session import Session

SIZES = ("100x64", "200x64", "400x64", "216x68")
X: list[float | None] = [step / 10 for step in range(10)]
PASSES = {"attribution": [1.0, 1.0], "observation": [9.0, 0.0]}


def simulate(cases: int, methods: int) -> Iterator[CaseResult]:
    """Cases of 20 protocols on 10 models of any number of datasets; every 15th score is absent."""
    rng = np.random.default_rng(0)
    names = ["random", *(f"method_{index}" for index in range(1, methods))]
    skill = rng.normal(0, 0.1, size=methods)
    for number in range(cases):
        model, protocol = number // 20 % 10, number % 20
        scores = skill + rng.normal(0, 0.1, size=methods)
        images = rng.normal(0, 0.02, size=RESAMPLES)
        outcomes = {}
        for index, name in enumerate(names):
            if index % 5 == 4 and (model + index) % 3 == 0:
                outcomes[name] = Outcome("not_applicable", "the model has no attention")
                continue
            # Three digits, as of the accuracy over some images: a few ties.
            replicates = scores[index] + images + rng.normal(0, 0.01, size=RESAMPLES)
            replicates = replicates.round(3)
            low, high = interval(replicates)
            outcomes[name] = Outcome(
                "ok",
                score=float(scores[index]),
                low=low,
                high=high,
                curve=Curve(X, rng.random(len(X)).round(3).tolist()),
                passes=PASSES,
                replicates=replicates,
                seconds=0.1,
            )
        case = f"d{number // 200}-m{model}-p{protocol}"
        yield CaseResult(case, bool(protocol % 2), 100, 0.9, outcomes, {"removal": "mean"})


class Clock:
    """Seconds of the wall and of the processor, by what they were spent on."""

    def __init__(self) -> None:
        self.spent: dict[str, tuple[float, float]] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count what is done inside."""
        wall, processor = time.perf_counter(), time.process_time()
        yield
        before = self.spent.get(name, (0.0, 0.0))
        now = time.perf_counter() - wall, time.process_time() - processor
        self.spent[name] = before[0] + now[0], before[1] + now[1]

    def __str__(self) -> str:
        return ", ".join(f"{name} {w:.1f} s ({p:.1f})" for name, (w, p) in self.spent.items())


def close(cases: int, methods: int) -> str:
    """One line: seconds (and those of the processor), and megabytes here, sent and written."""
    clock, session, wire = Clock(), Session(), 0
    for result in simulate(cases, methods):
        names = list(result.outcomes)
        settings = RunSettings("default", 100, 0, "cpu", names, cases, methods)
        with clock("send"):
            text = dumps(Envelope(result.case, settings, "", threads=1, case=condense(result)))
        with clock("take"):
            session.take(text)
        wire += len(text)
    with clock("conclude"):
        document, _, _ = conclude(session, [], "none", workers=1)
    with tempfile.TemporaryDirectory() as folder:
        with clock("publish"):
            known, maps = details(document, session), Path(folder, "no-maps")
            written, _ = keep(document, Path(folder, "store"), known, maps)
            publish(document, Path(folder), known, maps, written)
        report = (Path(folder) / "report.json").stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"{cases} cases x {methods} methods: {clock}; peak {peak:.0f} MB, "
        f"wire {wire / 1e6:.1f} MB, report.json {report / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    if "CLOSING" in os.environ:
        print(close(*map(int, sys.argv[1].split("x"))), flush=True)
    else:
        for size in sys.argv[1:] or SIZES:
            command = [sys.executable, __file__, size]
            subprocess.run(command, env={**os.environ, "CLOSING": "1"}, check=True)
