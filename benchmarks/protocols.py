"""Seconds of each protocol over seconds of the bare forward passes that it needs.

    python benchmarks/protocols.py                   # embedded models at 32 px, resnet18 at 224 px
    python benchmarks/protocols.py "resnet*"         # some
    python benchmarks/protocols.py resnet "srg,saco" # some protocols

Evaluation is what the engine does for one batch and one method, from the maps to the score. It
includes what methods share, and leaves out attribution. It is compared with as many bare forward
passes of the model: eager, in inference mode, on batches of the same size. Both take turns in one
process, so that the load of the machine affects both. The ratio is the median over the turns. Maps
are noise. Fine-tuning is left out.

Protocols that arrange grids ask the network nothing, so what is timed is a pass of the network that
methods get for their grids, with what the protocol does after it: over bare passes of the cells.
"""

from __future__ import annotations

import contextlib
import ctypes
import fnmatch
import statistics
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np
import torch
from tabulate import tabulate
from torch import Tensor, nn

from attrcheck.contracts import Batch, Protocol
from attrcheck.datasets.shapes import shapes as embedded_shapes
from attrcheck.errors import NotApplicableError
from attrcheck.graph.disconnecting import disconnected, laid_out
from attrcheck.graph.predictor import Predictor, predictor_of
from attrcheck.graph.preparing import prepare
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.order import RANKS
from attrcheck.protocols.responses import responses
from attrcheck.protocols.sampling import SETS
from attrcheck.tensors.draws import normal_draws, normal_draws_on, shuffles, uniform_draws

GRIDS = ("grid_pointing", "difull", "dipart")
SAMPLED = ("sensitivity_n", "faithfulness_correlation", "infidelity")
GOALS = (
    {"morf": 1.1, "lerf": 1.1, "ids": 1.1, "sds": 1.1}
    | dict.fromkeys(("road_morf", "road_lerf", "soundness", "completeness"), 2.0)
    | dict.fromkeys(("srg", *SAMPLED, "saco", "f_fidelity", *GRIDS), 1.25)
)
"""Upper limits for small models; for resnet18 the first four should not exceed one."""
SIDE = 2
"""Of grids."""
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3
"""Options of glibc's mallopt."""
SECONDS = 3.0
"""Per cell of the table: no turn starts later than this, but there are at least five."""


def keep_memory() -> None:
    """Let glibc keep what is freed, as it ends up doing in a long run.

    Otherwise a process may give large tensors back to the system and fault them in again, depending
    on the state of its heap, which can cost a third of its speed.
    """
    with contextlib.suppress(AttributeError, OSError):
        for option in (TRIM_THRESHOLD, MMAP_THRESHOLD):
            ctypes.CDLL(None).mallopt(option, 2**30)


def evaluate(
    protocol: Protocol, predictor: Predictor, images: Tensor, labels: Tensor, maps: Tensor
) -> None:
    """One method in one batch, as the engine does it; nothing is remembered from before."""
    for known in (RANKS, SETS):
        known.clear()
    for draws in (shuffles, normal_draws, uniform_draws, normal_draws_on):
        draws.cache_clear()
    seeds = tuple(range(len(images)))
    batch = Batch(images, labels, seeds, responses(predictor, images, labels))
    shared = protocol.observe_shared(predictor, batch)
    protocol.reduce(protocol.observe(predictor, batch, maps, shared))


def bare(network: nn.Module, images: Tensor, passes: int) -> None:
    with torch.inference_mode():
        for _ in range(passes):
            network(images)


def seconds(run: Callable[[], None]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def ratio(one: Callable[[], None], other: Callable[[], None]) -> float:
    """Seconds of one over those of the other: the median over turns, after a warm-up."""
    one()
    other()
    turns: list[float] = []
    start = time.perf_counter()
    while len(turns) < 5 or time.perf_counter() - start < SECONDS:
        turns.append(seconds(one) / seconds(other))
    return statistics.median(turns)


def subjects(globs: str) -> Iterator[tuple[str, nn.Module, Tensor, Tensor]]:
    """Name, network, images and labels."""
    shapes = embedded_shapes().head(64)
    for name in models:
        if models.get(name).embedded and fnmatch.fnmatch(name, globs):
            network = models.get(name).network(shapes)
            yield name, network.eval(), shapes.normalise(shapes.images[:]), shapes.labels
    if fnmatch.fnmatch("resnet18", globs):
        yield resnet18()


def resnet18() -> tuple[str, nn.Module, Tensor, Tensor]:
    from attrcheck.adapters.vision import torchvision

    torch.manual_seed(0)
    network = torchvision.models.resnet18(num_classes=1000).eval()
    return "resnet18", network, torch.randn(4, 3, 224, 224), torch.arange(4)


def evaluate_grids(
    protocol: Protocol, network: nn.Module, grids: Tensor, labels: Tensor, maps: Tensor
) -> None:
    """One pass of the network on grids, and the score of one method in a batch."""
    bare(network, grids, 1)
    intact = {
        "correct": np.ones(len(grids), dtype=bool),
        "probability": np.ones(len(grids)),
    }
    masks = torch.zeros(maps.shape, dtype=torch.bool)
    masks[:, : maps.shape[1] // SIDE, : maps.shape[2] // SIDE] = True
    batch = Batch(grids, labels, tuple(range(len(grids))), intact, masks)
    protocol.reduce(protocol.observe(network, batch, maps, {}))


def of_grids(protocol: Protocol, network: nn.Module, images: Tensor, labels: Tensor) -> float:
    """The ratio for a protocol that arranges grids; NaN if the network takes none."""
    part = next(iter(protocol.parts.values()), protocol)
    grids = laid_out(images, SIDE)
    how = part.disconnection
    try:
        built = disconnected(prepare(network, images[:2]), images, how) if how else network
        bare(built, grids[:2], 1)
        prepared = prepare(built, grids[:2])
    except (NotApplicableError, RuntimeError):
        return float("nan")
    maps = noise(grids)
    return ratio(
        lambda: evaluate_grids(part, prepared, grids, labels, maps),
        lambda: bare(network, images, SIDE**2),
    )


def noise(images: Tensor) -> Tensor:
    return torch.rand(len(images), *images.shape[2:], generator=torch.Generator().manual_seed(0))


def row(
    name: str, network: nn.Module, images: Tensor, labels: Tensor, chosen: list[str]
) -> list[str]:
    predictor, maps = predictor_of(network), noise(images)
    cells = [name, f"{len(images)} x {images.shape[2]} px"]
    for protocol_name in chosen:
        # The smaller of the settings: a step costs the same, however many there are.
        protocol = protocols.get(protocol_name).make("default")
        if protocol.arranges:
            cells.append(f"{of_grids(protocol, network, images, labels):.2f}")
            continue
        before = predictor.passes
        evaluate(protocol, predictor, images, labels, maps)
        passes = (predictor.passes - before) // len(images)
        measured = ratio(
            lambda p=protocol: evaluate(p, predictor, images, labels, maps),  # type: ignore[misc]
            lambda n=passes: bare(network, images, n),  # type: ignore[misc]
        )
        cells.append(f"{measured:.2f}")
    return cells


def main() -> None:
    keep_memory()
    torch.set_num_threads(1)
    globs = sys.argv[1] if len(sys.argv) > 1 else "*"
    wanted = sys.argv[2].split(",") if len(sys.argv) > 2 else ["*"]
    chosen = [name for name in GOALS if any(fnmatch.fnmatch(name, glob) for glob in wanted)]
    print(f"torch {torch.__version__}, 1 thread")
    rows = []
    for subject in subjects(globs):
        rows.append(row(*subject, chosen))
        print(*rows[-1], flush=True)
    headers = ["model", "images", *chosen]
    goals = ["at most", "", *(f"{GOALS[name]:g}" for name in chosen)]
    print(tabulate([*rows, goals], headers, "github", disable_numparse=True))


if __name__ == "__main__":
    main()
