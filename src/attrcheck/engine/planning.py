"""What a run would cost: passes counted, one pass of each network measured, nothing else run."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter

import torch
from torch import Tensor, nn

from attrcheck.contracts import Case, Dataset, Method, Pictures, Pixels, Protocol, Tuning
from attrcheck.datasets.pixels import in_memory
from attrcheck.engine.applying import refusal
from attrcheck.engine.attribution import Reattribution
from attrcheck.engine.finding import base_of, find
from attrcheck.engine.lab import Lab
from attrcheck.engine.observing import observe, observe_intact, observe_shared
from attrcheck.engine.pairs import Pair, arranged, pair_of
from attrcheck.errors import AttrcheckError, NotApplicableError
from attrcheck.models import model as models
from attrcheck.tensors.batching import (
    bytes_per_sample,
    limited_to,
    quick_size,
    samples_at_once,
)
from attrcheck.training.finetuning import recipe_for
from attrcheck.training.weights import weights_path

TRIED = 2
"""Images that passes are counted and measured on."""
REPEATS = 2
"""Measured passes, of which the quicker counts; one more comes first, to warm up."""
FLOAT = 4
"""Bytes of a number in a map."""


@dataclass(frozen=True)
class Cost:
    """What scoring the maps of an image costs: counted on a small network in place of the real one.

    forward: passes per method. maps: maps that the protocol asks for on the way. shared: passes for
    all methods together. rows: bytes per method.
    """

    forward: float
    maps: float
    shared: float
    rows: float


@dataclass(frozen=True)
class PairPlan:
    """What the cases of one dataset x model cost, in a process of its own, with an empty store.

    images: those of the case that has most. training: cases that train networks of their own, of
    which nothing is counted. problem: why nothing is known.
    """

    pair: str
    cases: int
    methods: int = 0
    images: int = 0
    forward: float = 0.0
    backward: float = 0.0
    seconds: float = 0.0
    memory: float = 0.0
    disk: float = 0.0
    training: int = 0
    problem: str = ""


def plan(lab: Lab, cases: Sequence[Case]) -> list[PairPlan]:
    """The plan of every pair, in the order of the cases."""
    torch.set_num_threads(lab.settings.threads)
    lessons = cache(lambda dataset: _lessons(lab, dataset))  # drawn once for all models
    pairs: dict[tuple[str, str], list[Case]] = {}
    for case in cases:
        pairs.setdefault((case.dataset, case.model), []).append(case)
    plans = []
    for chosen in pairs.values():
        try:
            with limited_to(lab.settings.memory, lab.settings.sharers):
                plans.append(_Planned(lab, chosen, lessons).plan())
        except AttrcheckError as error:
            plans.append(PairPlan(chosen[0].pair, len(chosen), problem=str(error)))
    return plans


def total(plans: Sequence[PairPlan]) -> PairPlan:
    """All pairs, one after another: memory is that of the largest."""
    return PairPlan(
        pair="total",
        cases=sum(plan.cases for plan in plans),
        methods=max((plan.methods for plan in plans), default=0),
        images=max((plan.images for plan in plans), default=0),
        forward=sum(plan.forward for plan in plans),
        backward=sum(plan.backward for plan in plans),
        seconds=sum(plan.seconds for plan in plans),
        memory=max((plan.memory for plan in plans), default=0.0),
        disk=sum(plan.disk for plan in plans),
        training=sum(plan.training for plan in plans),
    )


@dataclass(frozen=True)
class _Planned:
    """The cases of one pair. lessons: how many images a dataset has to learn from."""

    lab: Lab
    cases: Sequence[Case]
    lessons: Callable[[str], int]

    @cached_property
    def pair(self) -> Pair:
        """The pair with a few images: its networks are the real ones."""
        first = self.cases[0]
        return self.lab.pair(first.dataset, first.model, TRIED)

    @cached_property
    def methods(self) -> list[Method]:
        """Those that apply."""
        asked = [find(name) for name in self.lab.settings.methods]
        return [method for method in asked if not refusal(method, self.pair, self.lab.store)]

    @cached_property
    def attributed(self) -> list[Method]:
        """Those whose maps are computed: absolute values of others' are not."""
        bases = {base.name: base for method in self.methods if (base := base_of(method) or method)}
        return list(bases.values())

    def plan(self) -> PairPlan:
        """Count and measure."""
        every = [self.lab.evaluation(case) for case in self.cases]
        evaluations = [one for one in every if not one.protocol.training_images]
        total = self.lab.loader.count(self.cases[0].dataset, self.lab.settings.images)
        forward, backward, disk = float(total), 0.0, 0.0  # all images as they are, once
        attributed: dict[Tuning | None, int] = {}
        scored: dict[object, tuple[int, Cost]] = {}
        shared: dict[object, tuple[int, float]] = {}
        for evaluation in evaluations:
            protocol, images = evaluation.protocol, evaluation.images
            tuning = protocol.tuning
            attributed[tuning] = max(attributed.get(tuning, 0), images if tuning else total)
            for part in protocol.parts.values() or [protocol]:
                cost = cost_of(part, self.pair)
                rows = tuning, type(part), part.observation or evaluation.case.protocol
                scored[rows] = max(scored.get(rows, (0, cost)), (images, cost), key=itemgetter(0))
                if part.shared is not None:
                    key = tuning, part.shared.key
                    shared[key] = max(shared.get(key, (0, 0.0)), (images, cost.shared))
        forward += sum(images * passes for images, passes in shared.values())
        there, back = self._passes(self.methods)
        for images, cost in scored.values():
            forward += images * (len(self.methods) * cost.forward + cost.maps * there)
            backward += images * cost.maps * back
            disk += images * len(self.methods) * cost.rows
        there, back = self._passes(self.attributed)
        for tuning, images in attributed.items():
            learnt = self._learnt(tuning) if tuning else 0
            forward += images * there + learnt
            backward += images * back + learnt
            disk += images * len(self.attributed) * _pixels(self.pair.images) * FLOAT
        one_forward, one_backward = measured(self.pair)
        return PairPlan(
            pair=self.pair.name,
            cases=len(self.cases),
            methods=len(self.methods),
            images=max(evaluation.images for evaluation in every),
            training=len(every) - len(evaluations),
            forward=forward,
            backward=backward,
            seconds=forward * one_forward + backward * one_backward,
            memory=_memory(self.pair, min(total, self.lab.loader.shard)),
            disk=disk,
        )

    @staticmethod
    def _passes(methods: Sequence[Method]) -> tuple[int, int]:
        """Of one map of each, forward and backward."""
        return sum(m.passes[0] for m in methods), sum(m.passes[1] for m in methods)

    def _learnt(self, tuning: Tuning) -> int:
        """Images that go through the network to fine-tune it; none where it ships fine-tuned."""
        dataset, model = self.cases[0].dataset, self.cases[0].model
        ships = models.get(model).embedded and weights_path(dataset, model, tuning.key).exists()
        return 0 if ships else recipe_for(dataset).epochs * self.lessons(dataset)


def _lessons(lab: Lab, dataset: str) -> int:
    data = lab.loader.dataset(dataset)
    if data.training is None:
        return 0
    learnt = data.training()
    return len(learnt) if isinstance(learnt, Pictures) else len(learnt[1])


def cost_of(protocol: Protocol, pair: Pair) -> Cost:
    """What a protocol costs per image of a pair, if it applies there.

    If it arranges images of its own, a map of one costs as many as there are images in its area.
    """
    if not protocol.arranges:
        return _counted(protocol, in_memory(pair.dataset))
    try:
        area = _pixels(arranged(protocol, pair).dataset.images) / _pixels(pair.images)
    except NotApplicableError:
        return Cost(forward=0.0, maps=0.0, shared=0.0, rows=0.0)
    return Cost(forward=0.0, maps=area, shared=0.0, rows=float(FLOAT))


def _counted(protocol: Protocol, data: Dataset) -> Cost:
    """Passes of a small network: it does not matter what the network is."""
    pair = pair_of(_stand_in(data), data, "stand_in", "cpu")
    count = len(data)
    stub = Method("stub", lambda model, images, targets: images.sum(1), passes=(1, 0))
    again = Reattribution(stub, pair, 0)
    intact = observe_intact(pair)
    before = pair.predictor.passes
    shared = protocol.shared
    rows = observe_shared(shared, pair, count, intact, 0) if shared else {}
    for_all = pair.predictor.passes - before
    maps = torch.rand(count, *data.images.shape[2:], generator=torch.Generator().manual_seed(0))
    observed, (forward, _) = observe(protocol, pair, count, maps.numpy(), intact, rows, again)
    called = float(again.passes[0]) / count
    return Cost(
        forward=forward - called,
        maps=called,
        shared=for_all / count,
        rows=sum(row.nbytes for row in observed.values()) / count,
    )


def measured(pair: Pair) -> tuple[float, float]:
    """Seconds that a forward and a backward pass of an image take, in a batch as in a run."""
    size = quick_size(pair.images)
    images = pair.images[torch.arange(size) % len(pair.images)]
    labels = pair.labels[torch.arange(size) % len(pair.labels)]

    def forward() -> None:
        with torch.inference_mode():
            pair.predictor(images)

    def both() -> None:
        inputs = images.clone().requires_grad_()
        with torch.enable_grad():
            chosen = pair.network(inputs).gather(1, labels[:, None]).sum()
        if chosen.requires_grad:
            torch.autograd.grad(chosen, inputs)

    ahead = _seconds(forward, images)
    return ahead / len(images), max(_seconds(both, images) - ahead, 0.0) / len(images)


def _seconds(work: Callable[[], None], images: Tensor) -> float:
    times = []
    for _ in range(1 + REPEATS):
        start = time.perf_counter()
        work()
        if images.device.type == "cuda":
            torch.cuda.synchronize(images.device)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def _memory(pair: Pair, images: int) -> float:
    """Bytes at most: weights twice, two shards of images and maps, the largest inner batch."""
    own = sum(part.numel() * part.element_size() for part in pair.network.parameters())
    shard = images * (pair.images[0].numel() + _pixels(pair.images)) * FLOAT
    batch = samples_at_once(pair.network, pair.images)
    return 2.0 * own + 2.0 * shard + batch * bytes_per_sample(pair.network, pair.images)


def _pixels(images: Tensor | Pixels) -> int:
    return int(images.shape[-1] * images.shape[-2])


def _stand_in(data: Dataset) -> nn.Module:
    """The smallest network that takes these images."""
    return nn.Sequential(
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(data.channels, data.classes)
    )
