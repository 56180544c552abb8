"""Seconds of each method over seconds of the bare forward and backward passes that it needs.

    python benchmarks/methods.py                     # all methods
    python benchmarks/methods.py "smoothgrad*,lrp"   # some

Bare passes use the same prepared model and the same images: forward passes under `inference_mode`,
backward passes as the gradient of the target logits, as many as the method declares. Method and
bare passes take turns in one process on one thread, for about the same time, so that the load of
the machine affects both. Both are measured in CPU seconds; the ratio is that of their fastest
turns. A ratio below one comes from larger inner batches, from passes that a batch shares, or from a
bound that a network does not need (LRP between ReLUs).

The goal is at most 1.25. Dummies are exempt: they need no pass. Methods with a rule in place of
each layer (DeepLIFT, LRP) also do arithmetic of the size of every activation, and some Python for
every layer, which shows in networks as thin as these.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
from collections.abc import Callable

import torch
from tabulate import tabulate
from torch import Tensor

from attrcheck.contracts import Method
from attrcheck.engine.loading import Loader
from attrcheck.engine.pairs import Pair
from attrcheck.methods import method as methods

PAIRS = (("digits", "resnet"), ("shapes", "vgg"))
OTHERS = (("shapes", "vit"), ("shapes", "bcos"), ("shapes", "bagnet"))
"""For methods that apply to neither of the pairs."""
IMAGES = 16
GOAL = 1.25
MOST_PASSES = 3200
"""In one turn: a method that needs more passes gets fewer images."""
FEWEST, TURNS, SECONDS = 5, 15, 5.0
"""Turns of a method, at least and at most; after these seconds no more than the fewest."""
BLOCK = 0.5
"""Seconds of bare passes in one turn, at most."""


def seconds(run: Callable[[], object]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def seconds_each(run: Callable[[], object], block: float) -> float:
    """Seconds of one run, the mean over runs that fill a block of seconds."""
    taken = [seconds(run)]
    while sum(taken) < block:
        taken.append(seconds(run))
    return sum(taken) / len(taken)


def forward(pair: Pair) -> None:
    with torch.inference_mode():
        pair.network(pair.images)


def backward(pair: Pair) -> Tensor:
    """The gradient, with its forward pass."""
    inputs = pair.images.clone().requires_grad_()
    logits = pair.network(inputs).gather(1, pair.labels[:, None])
    gradient: Tensor = torch.autograd.grad(logits.sum(), inputs)[0]
    return gradient


def attribute(method: Method, pair: Pair, count: int) -> Tensor:
    """The maps of the first images, as the engine asks for them."""
    offers = {"seeds": pair.seeds(slice(count), 0, method.name), "dataset": pair.dataset}
    asked = inspect.signature(method.attribute).parameters
    optional = {name: value for name, value in offers.items() if name in asked}
    maps: Tensor = method.attribute(
        pair.network, pair.images[:count], pair.labels[:count], **optional
    )
    return maps


def measure(method: Method, pair: Pair) -> tuple[float, float]:
    """Milliseconds per image of a method and of its bare passes, each in its fastest turn."""
    forwards, backwards = method.passes
    count = max(1, min(IMAGES, MOST_PASSES // max(forwards, backwards, 1)))
    attribute(method, pair, count)
    block = min(BLOCK, seconds(lambda: attribute(method, pair, count)))
    turns: list[tuple[float, float, float]] = []
    start = time.process_time()
    while len(turns) < FEWEST or (len(turns) < TURNS and time.process_time() - start < SECONDS):
        alone = seconds_each(lambda: forward(pair), block)
        both = seconds_each(lambda: backward(pair), block)
        turns.append((alone, both, seconds(lambda: attribute(method, pair, count))))
    alone, both, taken = (min(side) for side in zip(*turns, strict=True))
    floor = both * backwards + alone * max(0, forwards - backwards)
    return 1000 * taken / count, 1000 * floor / len(pair.images)


def row(name: str) -> list[str | float]:
    method = methods.get(name)
    cells: list[str | float] = [name, method.family, "{} + {}".format(*method.passes)]
    setups = [pair for pair in map(loaded, PAIRS) if not method.not_applicable(pair.network)]
    others = (pair for pair in map(loaded, OTHERS) if not method.not_applicable(pair.network))
    worst = 0.0
    for pair in setups or [next(others)]:
        taken, floor = measure(method, pair)
        ratio = "dummy" if method.dummy else taken / floor if floor else "no passes"
        cells += [pair.name, taken, f"{ratio:.2f}" if isinstance(ratio, float) else ratio]
        worst = max(worst, ratio) if isinstance(ratio, float) else worst
    cells += [""] * (3 + 3 * len(PAIRS) - len(cells))
    return [*cells, "above" if worst > GOAL else ""]


@functools.cache
def loaded(pair: tuple[str, str]) -> Pair:
    return Loader("cpu").pair(*pair, IMAGES)


def main() -> None:
    torch.set_num_threads(1)
    names = methods.select(sys.argv[1] if len(sys.argv) > 1 else "*")
    headers = ["method", "family", "passes"]
    for _ in PAIRS:
        headers += ["on", "ms", "ratio"]
    print(f"torch {torch.__version__}, 1 thread, {IMAGES} images, CPU seconds")
    rows = [row(name) for name in names]
    print(tabulate(rows, [*headers, f"goal {GOAL}"], "github", floatfmt=".2f"))


if __name__ == "__main__":
    main()
