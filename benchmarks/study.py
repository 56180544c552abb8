"""A study in eight tasks, or on Ray, against one process: `python benchmarks/study.py [IMAGES]`.

Pictures that are made when they are asked for, a network of a few thousand parameters, 5 methods, 4
protocols. Eight processes compute a shard each of every eight (`--attr-shard I/8`), one of them is
killed and started again, `attrcheck merge` joins their stores, and the plain command reports. Its
report must be that of a single process, and no process may take more than 2 GB. With
`--executor ray` two nodes of Ray on this machine, of a CPU each, compute the tasks instead.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

TASKS, KILLED = 8, 3
"""How many tasks there are, and which of them is killed."""
MOST_MEMORY = 2048
"""Megabytes of any process."""
METHODS = "random,saliency,input_x_gradient,guided_backprop,gradcam"
PROTOCOLS = "morf,lerf,sds,insertion"
SUITE = "def test_case(attr_case):\n    attr_case.run()\n"
CONFTEST = """
import numpy as np
import torch
from PIL import Image
from torch import nn

import attrcheck
from attrcheck import Model, Pictures, Preprocessing

COUNT, CLASSES, SIDE = {images}, 4, 16
FRAME = Preprocessing((SIDE, SIDE), (0.5,) * 3, (0.25,) * 3)


def read(at):
    "Noise with a brighter quarter, which is the class."
    rng = np.random.default_rng(at)
    pixels = rng.integers(0, 160, (SIDE, SIDE, 3), np.uint8)
    row, column = divmod(at % CLASSES, 2)
    half = SIDE // 2
    pixels[row * half : (row + 1) * half, column * half : (column + 1) * half] += 60
    return Image.fromarray(pixels)


@attrcheck.dataset("study")
def study():
    "Never in memory as a whole."
    return Pictures(
        name="study",
        read=read,
        fingerprint=lambda indices: f"study {{indices[0]}} {{indices[-1]}} {{len(indices)}}",
        labels=tuple(at % CLASSES for at in range(COUNT)),
        ids=tuple(f"p{{at}}" for at in range(COUNT)),
        class_names=tuple("abcd"),
    )


@attrcheck.model("small", datasets="study")
def small(data):
    "Two convolutions and a layer that sees the quarters."
    torch.manual_seed(0)
    features = nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU()
    )
    head = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(256, CLASSES))
    return Model(nn.Sequential(*features, *head).requires_grad_(False).eval(), FRAME)
"""


class End(NamedTuple):
    """How a process ended: its exit code, its seconds and its peak of memory in megabytes."""

    code: int
    seconds: float
    peak: float


def pytest_command(store: Path, *arguments: str) -> list[str]:
    """The plain command, in a folder that holds the study."""
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
        *("--attr-datasets=study", f"--attr-methods={METHODS}", f"--attr-protocols={PROTOCOLS}"),
        *("--attr-profile=full", "--attr-threads=1", "--attr-accept-accuracy"),
        *(f"--attr-store={store}", *arguments),
    ]


class Process:
    """A process with a log, whose peak of memory is known when it has ended."""

    def __init__(self, folder: Path, name: str, command: list[str]) -> None:
        self.started = time.perf_counter()
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            environment = {**os.environ, "OMP_NUM_THREADS": "1"}
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT
            )

    def end(self, kill_after: float | None = None) -> End:
        """Wait for it; kill it after so many seconds, if that is asked for."""
        if kill_after is not None:
            time.sleep(kill_after)
            self.process.send_signal(signal.SIGKILL)
        _, status, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - self.started
        return End(self.process.returncode, seconds, usage.ru_maxrss / 1024)


def told(name: str, end: End) -> End:
    """Print how a process ended."""
    print(f"{name}: exit {end.code}, {end.seconds:.0f} s, peak {end.peak:.0f} MB", flush=True)
    return end


def tasks(folder: Path, at_once: int) -> list[End]:
    """Run all tasks, some at a time; one is killed half-way, and started again."""
    ends = []

    def start(number: int, name: str) -> Process:
        shard = f"--attr-shard={number}/{TASKS}"
        return Process(folder, name, pytest_command(folder / "runs" / str(number), shard))

    begun = time.perf_counter()
    first = told("task 1", start(1, "task1").end())
    ends.append(first)
    killed = told(f"task {KILLED}", start(KILLED, "killed").end(kill_after=first.seconds / 2))
    if killed.code != -signal.SIGKILL:
        raise SystemExit("the task that should have been killed had ended before")
    left = list(range(2, TASKS + 1))
    while left:
        some, left = left[:at_once], left[at_once:]
        running = [(number, start(number, f"task{number}")) for number in some]
        ends += [told(f"task {number}", process.end()) for number, process in running]
    print(f"tasks: {time.perf_counter() - begun:.0f} s in all, {at_once} at once", flush=True)
    return ends


def report(folder: Path) -> dict[str, Any]:
    """A report without what it says of the run itself: when, how long, where."""
    document: dict[str, Any] = json.loads((folder / "report.json").read_text())
    document.pop("run")
    return document


def in_tasks(folder: Path, at_once: int) -> list[End]:
    """Run the tasks, join their stores, and report."""
    ends = tasks(folder, at_once)
    stores = [str(folder / "runs" / str(number)) for number in range(1, TASKS + 1)]
    code = "import sys; from attrcheck.cli import main; sys.exit(main())"
    merge = [sys.executable, "-c", code, "merge", *stores, "--into", str(folder / "store")]
    ends.append(told("merge", Process(folder, "merge", merge).end()))
    print((folder / "merge.log").read_text().strip())
    reported = ("--attr-report", "--attr-report-dir=joined")
    joined = Process(folder, "joined", pytest_command(folder / "store", *reported))
    ends.append(told("the plain command on the merged store", joined.end()))
    return ends


def on_ray(folder: Path) -> list[End]:
    """Run the plain command on a cluster of two nodes; the peak of a worker counts as well."""
    from ray.cluster_utils import Cluster  # an optional library

    node = {"num_cpus": 1, "object_store_memory": 2**28}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node)
        there = ("--attr-executor=ray", f"--attr-ray-address={cluster.address}")
        reported = ("--attr-report", "--attr-report-dir=joined")
        with Watch("ray::") as watch:
            command = pytest_command(folder / "store", *reported, *there)
            driver = told("the driver of two nodes", Process(folder, "joined", command).end())
    finally:
        cluster.shutdown()
    print(f"workers of Ray: peak {watch.peak:.0f} MB")
    return [driver, End(0, driver.seconds, watch.peak)]


class Watch(threading.Thread):
    """Looks every second at the processes whose command begins so; their peak in megabytes."""

    def __init__(self, start: str) -> None:
        super().__init__(daemon=True)
        self.start_of_command = start.encode()
        self.peak = 0.0
        self.over = threading.Event()

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.join()

    def run(self) -> None:
        while not self.over.wait(1):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if (process / "cmdline").read_bytes().startswith(self.start_of_command):
                        status = (process / "status").read_text()
                        self.peak = max(self.peak, int(status.split("VmHWM:")[1].split()[0]) / 1024)


def study(folder: Path, images: int, at_once: int, executor: str) -> bool:
    """Run all of it; whether the reports are equal and memory was enough."""
    (folder / "conftest.py").write_text(CONFTEST.format(images=images))
    (folder / "test_study.py").write_text(SUITE)
    ends = []
    if not (folder / "single").exists():  # else it was kept
        reported = ("--attr-report", "--attr-report-dir=single")
        single = Process(folder, "single", pytest_command(folder / "single-store", *reported))
        ends.append(told("one process", single.end()))
    ends += on_ray(folder) if executor == "ray" else in_tasks(folder, at_once)
    if any(end.code for end in ends):
        raise SystemExit(f"a process failed: see {folder}/*.log")
    equal = report(folder / "single") == report(folder / "joined")
    peak = max(end.peak for end in ends)
    computed = "computing" in (folder / "joined.log").read_text()
    print(f"{images} images: reports {'equal' if equal else 'DIFFER'}, peak {peak:.0f} MB")
    if computed:
        print("the plain command had to compute shards: see joined.log")
    return equal and not computed and peak <= MOST_MEMORY


def main() -> int:
    """Run the study in a folder of its own; 1 if it is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("images", nargs="?", type=int, default=50_000)
    parser.add_argument("--at-once", type=int, default=2, help="tasks at the same time")
    parser.add_argument("--executor", choices=("tasks", "ray"), default="tasks")
    parser.add_argument("--keep", type=Path, help="a folder for stores, logs and reports")
    chosen = parser.parse_args()
    folder = chosen.keep or Path(tempfile.mkdtemp(prefix="attrcheck-study-"))
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return int(not study(folder.resolve(), chosen.images, chosen.at_once, chosen.executor))
    finally:
        if chosen.keep is None:
            shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
