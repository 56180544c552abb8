"""Peak memory and speed with pictures that are read on demand, against the same ones in memory.

    python benchmarks/memory.py                 # 2,000 and 20,000 pictures of 64 x 64
    python benchmarks/memory.py --images 500 5000 --folder /tmp/pictures

Every run is a process of its own: peak memory is the most that it ever held. What grows with the
number of images should be rows alone, and decoding should hide behind the passes.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from tabulate import tabulate
from torch import nn

import attrcheck
from attrcheck.contracts import Case, Dataset, Model, Pictures, Preprocessing, Settings
from attrcheck.datasets.folders import folder
from attrcheck.datasets.pixels import in_memory, view
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab

SIDE, CLASSES, WIDTH = 64, 10, 16
FRAME = Preprocessing((SIDE, SIDE), (0.5,) * 3, (0.25,) * 3, resize=SIDE)
METHODS = ("saliency", "random")
PROTOCOLS = ("morf",)


def write(place: Path, count: int) -> None:
    """JPEGs of smooth noise with edges, in a folder for each class."""
    rng = np.random.default_rng(0)
    for number in range(count):
        path = place / f"class{number % CLASSES}" / f"{number}.jpg"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        coarse = Image.fromarray(rng.integers(0, 256, (8, 8, 3), np.uint8))
        coarse.resize((SIDE + 8, SIDE), Image.Resampling.BILINEAR).save(path, quality=90)


def network(data: Dataset | Pictures) -> Model:
    """A few convolutions, with weights from a seed."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [nn.Conv2d(3, WIDTH, 3, 2, 1), nn.ReLU()]
    for _ in range(3):
        layers += [nn.Conv2d(WIDTH, WIDTH, 3, 1, 1), nn.ReLU()]
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(WIDTH, data.classes)]
    return Model(nn.Sequential(*layers).requires_grad_(False).eval(), FRAME)


def measure(place: Path, count: int, source: str) -> None:
    """Run the cases on the first pictures, and print what it took."""
    pictures = folder(place)
    pictures = replace(pictures, labels=pictures.labels[:count], ids=pictures.ids[:count])
    held = in_memory(view(pictures, FRAME)) if source == "memory" else None
    attrcheck.dataset("pictures")(lambda: held or pictures)
    attrcheck.model("small", datasets="pictures")(network)
    with tempfile.TemporaryDirectory() as store:
        settings = Settings(
            profile="default",
            images=count,
            seed=0,
            methods=METHODS,
            store=Path(store),
            fresh=False,
            run="benchmark",
            device="cpu",
            threads=1,
            memory=2**29,
            images_given=True,
            accept_accuracy=True,
        )
        lab = Lab.of(settings)
        start = time.perf_counter()
        for protocol in PROTOCOLS:
            run_case(lab.evaluation(Case("pictures", "small", protocol)), lambda text: None)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"peak": peak, "seconds": seconds}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, nargs=2, default=[2_000, 20_000])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "attr-pictures"))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        return measure(chosen.folder, chosen.images[0], chosen.child)
    few, many = chosen.images
    write(chosen.folder, many)
    results = {}
    for source, count in (("folder", few), ("memory", few), ("folder", many)):
        command = [sys.executable, __file__, "--child", source, "--folder", str(chosen.folder)]
        command += ["--images", str(count), str(count)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        results[source, count] = json.loads(output.splitlines()[-1])
    rows = [
        [source, count, f"{one['peak'] / 1e6:.0f}", f"{1000 * one['seconds'] / count:.2f}"]
        for (source, count), one in results.items()
    ]
    print(tabulate(rows, ["from", "images", "peak MB", "ms per image"]))
    peaks = results["folder", many]["peak"] / results["folder", few]["peak"]
    speed = results["folder", few]["seconds"] / results["memory", few]["seconds"]
    print(f"peak memory, {many:,} against {few:,} images: {peaks:.2f} (goal: 1.10)")
    print(f"time, folder against memory: {speed:.2f} (goal: 1.15)")
    return None


if __name__ == "__main__":
    main()
