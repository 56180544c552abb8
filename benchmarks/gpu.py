"""Passes, waits and images per second of methods and protocols on a GPU, against the bare model.

    python benchmarks/gpu.py                                  # ResNet-50 at 224 px, on cuda:0
    python benchmarks/gpu.py --methods "lrp*" --protocols "road*" --images 256 --device cuda:1
    python benchmarks/gpu.py --network shapes-resnet --device cpu          # without a GPU
    python benchmarks/gpu.py --network shapes-resnet --device pretended    # counts, as no GPU is

A wait is a call that returns when the GPU has done all that it was asked for: those that torch
warns of in its debug mode of synchronising, and the explicit ones. Launches are counted on the
pretended device alone. The bare model makes as many forward and backward passes on batches of the
same size, and takes turns with what is measured; the ratio is the median of their seconds.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from tabulate import tabulate
from torch import Tensor

from attrcheck.contracts import Dataset
from attrcheck.engine.attribution import Reattribution, attribute_batch, not_applicable
from attrcheck.engine.loading import Loader
from attrcheck.engine.observing import observe, observe_intact, observe_shared
from attrcheck.engine.pairs import Pair, pair_of
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols

NO_GPU = (
    "there is no CUDA device here; --device cpu or --device pretended run without one, for which "
    "--network shapes-resnet is small enough"
)
HEADERS = ["", "forward", "backward", "waits", "launches", "images/s", "bare", "ratio"]
TURNS = 3
SYNCHRONIZING = "synchronizing"
"""A word of the warnings that torch gives of waits."""


class Counter:
    """Waits and launches on a real device; None where they cannot be counted."""

    launches: int | None = None

    def __init__(self) -> None:
        self.waits: int | None = 0

    def clear(self) -> None:
        self.waits = None if self.waits is None else 0

    def add(self, message: object = SYNCHRONIZING, *others: Any, **more: Any) -> None:
        """Count a wait, or what torch warns of if it is one."""
        if self.waits is not None and SYNCHRONIZING in str(message):
            self.waits += 1


@contextmanager
def counted(device: str) -> Iterator[Any]:
    """Count waits: by torch's warnings on a GPU, all of them on the pretended one."""
    if device == "pretended":
        sys.path.insert(0, str(Path(__file__).parent.parent))
        with importlib.import_module("tests.pretend").pretended_gpu() as gpu:
            yield gpu
        return
    counter = Counter()
    if not device.startswith("cuda"):
        counter.waits = None
        yield counter
        return
    synchronize = torch.cuda.Stream.synchronize

    def explicit(stream: torch.cuda.Stream) -> None:
        counter.add()
        synchronize(stream)

    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("always")
        stack.enter_context(mock.patch.object(warnings, "showwarning", counter.add))
        stack.enter_context(mock.patch.object(torch.cuda.Stream, "synchronize", explicit))
        torch.cuda.set_sync_debug_mode("warn")
        stack.callback(torch.cuda.set_sync_debug_mode, "default")
        yield counter


def pair(network: str, images: int, device: str) -> Pair:
    """An embedded network with its dataset, or one of torchvision with random weights and noise."""
    if "-" in network:
        dataset, model = network.split("-")
        return Loader(device).pair(dataset, model, images)
    from attrcheck.adapters.vision import torchvision

    torch.manual_seed(0)
    built = getattr(torchvision.models, network)(num_classes=1000).eval().to(device)
    pictures = torch.rand(images, 3, 224, 224)
    ids = tuple(f"noise/{place}" for place in range(images))
    statistics = (0.5,) * 3, (0.25,) * 3
    noise = Dataset("noise", pictures, torch.arange(images) % 1000, 1000, *statistics, ids)
    return pair_of(built, noise, network, device)


def synchronized(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: str) -> float:
    synchronized(device)
    start = time.perf_counter()
    work()
    synchronized(device)
    return time.perf_counter() - start


def bare(subject: Pair, forward: float, backward: float) -> None:
    """As many passes of the network as its author built it."""
    for part in subject.slices():
        images, labels = subject.images[part], subject.labels[part]
        for _ in range(round(backward)):
            inputs = images.clone().requires_grad_()
            logits: Tensor = subject.original(inputs)
            torch.autograd.grad(logits.gather(1, labels[:, None]).sum(), inputs)
        with torch.inference_mode():
            for _ in range(round(forward - backward)):
                subject.original(images)


def row(
    name: str, work: Callable[[], Sequence[float]], subject: Pair, counter: Any, device: str
) -> list[Any]:
    """Work returns the passes per image, forward and backward."""
    forward, backward = work()  # what is made once is made now
    counter.clear()
    work()
    count, batches = len(subject.images), len(list(subject.slices()))
    waits = None if counter.waits is None else _total(counter.waits) / batches
    launches = None if counter.launches is None else counter.launches / batches
    head = [name, forward, backward, waits, launches]
    if launches is not None:
        return [*head, None, None, None]  # nobody wants to know how fast the pretended device is
    turns = [
        (seconds(work, device), seconds(lambda: bare(subject, forward, backward), device))
        for _ in range(TURNS)
    ]
    taken = min(one for one, _ in turns)
    floor = min(other for _, other in turns)
    ratio = statistics.median(one / other for one, other in turns) if forward else None
    speeds = [count / taken, count / floor if forward else None]
    return [*head, *speeds, ratio]


def _total(waits: Any) -> int:
    return waits if isinstance(waits, int) else waits.total()


def rows(subject: Pair, chosen: argparse.Namespace, counter: Any, device: str) -> Iterator[Any]:
    for name in methods.select(chosen.methods) if chosen.methods else ():
        method = methods.get(name)
        if method.absolute_of or not_applicable(method, subject):
            continue

        def attributed(method: Any = method) -> Sequence[float]:
            for part in subject.slices():
                attribute_batch(method, subject, part, 0)
            return [float(count) for count in method.passes]

        yield row(name, attributed, subject, counter, device)
    intact = observe_intact(subject)
    maps = torch.rand(len(subject.images), *subject.images.shape[2:]).numpy()
    again = methods.get("gradient")
    for name in protocols.select(chosen.protocols) if chosen.protocols else ():
        protocol = protocols.get(name).make("default")
        lacks = "masks" in protocol.needs and subject.made.masks is None
        if lacks or protocol.training_images:
            continue

        def observed(protocol: Any = protocol) -> Sequence[float]:
            shared, count = {}, len(subject.images)
            before = subject.predictor.passes
            if protocol.shared:
                shared = observe_shared(protocol.shared, subject, count, intact, 0)
            extra = (subject.predictor.passes - before) / count
            method = Reattribution(again, subject, 0)
            passes = observe(protocol, subject, count, maps, intact, shared, method)[1]
            return [passes[0] + extra, passes[1]]

        yield row(name, observed, subject, counter, device)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda:0", help="cuda:K, cpu or pretended")
    parser.add_argument("--network", default="resnet50", help="of torchvision, or DATASET-MODEL")
    parser.add_argument("--images", type=int, default=64)
    parser.add_argument("--methods", default="gradient,integrated_gradients,smoothgrad,lrp,gradcam")
    parser.add_argument("--protocols", default="morf,insertion,sds,road_morf,soundness")
    chosen = parser.parse_args(arguments)
    if chosen.device.startswith("cuda") and not torch.cuda.is_available():
        print(NO_GPU)
        return 1
    device = "cuda:0" if chosen.device == "pretended" else chosen.device
    with counted(chosen.device) as counter:
        subject = pair(chosen.network, chosen.images, device)
        table = list(rows(subject, chosen, counter, device))
    print(f"torch {torch.__version__}, {chosen.network}, {chosen.images} images, {chosen.device}")
    print(tabulate(table, HEADERS, "github", floatfmt=".4g", missingval="-"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
