"""Seconds of MoRF + LeRF evaluation over seconds of the bare forward passes they need.

    python benchmarks/overhead.py            # embedded models at 32 px, resnet18 at 224 px

Both sides run in one process, in turns, on the same images in the same batches, so that the load
of the machine falls on both; the ratio is that of the fastest turns. The bare side is the model as
it came, in eval and inference mode. Evaluation runs on the prepared copy, whose batch norms are
folded, which is how a ratio can be below one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from tabulate import tabulate
from torch import Tensor, nn

from attrcheck.datasets import dataset as datasets
from attrcheck.models import model as models
from attrcheck.models._prepare import prepare
from attrcheck.outcomes import outcome
from attrcheck.protocols import Batch
from attrcheck.protocols._ablation import Ablation

ORDERS = (
    Ablation(most_relevant_first=True, higher_is_better=False, steps=10),
    Ablation(most_relevant_first=False, higher_is_better=True, steps=10),
)
TURNS = 15


def passes() -> int:
    """Passes per image: the intact and the empty image once, and each order's steps between."""
    return 2 + sum(order.steps - 1 for order in ORDERS)


def evaluate(network: nn.Module, images: Tensor, labels: Tensor, maps: Tensor) -> None:
    """MoRF and LeRF as the engine runs them, down to the scores."""
    intact = outcome(network, images, labels)
    batch = Batch(images, labels, tuple(range(len(images))), intact)
    shared = ORDERS[0].shared(network, batch)
    for order in ORDERS:
        order.reduce(order.observe(network, batch, maps, shared))


def bare(network: nn.Module, images: Tensor) -> None:
    """The same number of forward passes, and nothing else."""
    with torch.inference_mode():
        for _ in range(passes()):
            network(images)


def seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(network: nn.Module, images: Tensor, labels: Tensor) -> list[float]:
    """Fastest evaluation, fastest bare passes, and their ratio."""
    network = network.eval()
    prepared = prepare(network)
    maps = torch.rand(len(images), *images.shape[2:])
    bare(network, images)
    evaluate(prepared, images, labels, maps)
    turns = [
        (
            seconds(lambda: evaluate(prepared, images, labels, maps)),
            seconds(lambda: bare(network, images)),
        )
        for _ in range(TURNS)
    ]
    ours, floor = (min(side) for side in zip(*turns, strict=True))
    return [ours, floor, ours / floor]


def main() -> None:
    rows: list[list[str | float]] = []
    shapes = datasets.get("shapes").load().head(64)
    images = shapes.normalise(shapes.images)
    for name in models:
        network = models.get(name).build(shapes)
        rows.append([name, "64 x 32 px", *ratio(network, images, shapes.labels), 1.2])
    from attrcheck.vision import torchvision

    labels = torch.zeros(8, dtype=torch.int64)
    resnet18 = torchvision.models.resnet18(num_classes=1000)
    rows.append(
        ["resnet18", "8 x 224 px", *ratio(resnet18, torch.randn(8, 3, 224, 224), labels), 1.1]
    )
    headers = ["model", "images", "evaluation s", "bare passes s", "ratio", "at most"]
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads, {TURNS} turns")
    print(tabulate(rows, headers, "github", floatfmt=".3f"))


if __name__ == "__main__":
    main()
