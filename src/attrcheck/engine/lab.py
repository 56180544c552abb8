"""The run that an item is part of: what a check may look at, and what it may compute anew."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attrcheck import contracts
from attrcheck.contracts import Case, Check, Dataset, Protocol, Settings, Tuning, Verdict
from attrcheck.engine import keys, remote
from attrcheck.engine.evaluation import Evaluation, Progress
from attrcheck.engine.finding import find
from attrcheck.engine.loading import Loader
from attrcheck.engine.pairs import Pair, pair_of
from attrcheck.engine.resampling import resample
from attrcheck.engine.results import Outcome, plain_figures
from attrcheck.engine.retraining import of_training, trainer
from attrcheck.engine.settings import BLOCK
from attrcheck.errors import cut
from attrcheck.protocols import protocol as protocols
from attrcheck.store.encoding import Entry, Key, fingerprint
from attrcheck.store.entries import Store, UnsureError
from attrcheck.store.fingerprints import of_code
from attrcheck.tensors.precision import be_exact

FEW = 10
"""Images for what cannot be had by looking at stored rows again."""


@dataclass(frozen=True)
class Lab:
    """A run in one process: its settings, its store, its loaded pairs and its cases.

    elsewhere: waits until other processes have done their part of a case, if there are any; the
    methods that ended there.
    """

    settings: Settings
    store: Store
    loader: Loader
    cases: tuple[Case, ...] = ()
    progress: Progress = field(default=lambda text: None)
    elsewhere: Callable[[Case], Mapping[str, Outcome]] = field(default=lambda case: {})
    _last: dict[Any, Evaluation] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, settings: Settings) -> Lab:
        """A lab on the store and the device of these settings."""
        store = Store(
            settings.store, settings.run, settings.fresh, settings.verify, settings.keep_maps
        )
        shard = settings.shard or BLOCK
        isolated = remote.start(settings)
        be_exact()
        loader = Loader(settings.device, store, isolated, shard, settings.precision)
        return cls(settings, store, loader)

    def evaluation(self, case: Case) -> Evaluation:
        """The case as the run evaluates it; the last one stays, as checks look at it in turn."""
        wanted = case, self.settings, self.elsewhere
        if wanted not in self._last:
            ended = self.elsewhere(case)
            self._last.clear()
            self._last[wanted] = Evaluation(
                case, self.settings, self.store, self.loader, ended=ended
            )
        return self._last[wanted]

    def few(
        self,
        case: Case,
        protocol: Protocol | None = None,
        seed: int | None = None,
        alter: Callable[[contracts.Pair], contracts.Pair] | None = None,
    ) -> Evaluation:
        """The case on its first few images, with another protocol, seed or an altered pair."""
        own = Evaluation(case, self.settings, self.store, self.loader)
        most = min(own.images, FEW)
        settings, chosen = self.settings, protocol or own.protocol
        capped = "most_images" in getattr(chosen, "__dataclass_fields__", {})
        if seed is not None or alter is not None or not capped:
            # Maps of its own are made for no other images.
            settings = replace(settings, images=most, seed=settings.seed if seed is None else seed)
        if capped:
            chosen = replace(chosen, most_images=most)  # type: ignore[type-var]
        settings = replace(settings, images_given=False)
        altered = cast("Callable[[Pair], Pair] | None", alter)
        return Evaluation(case, settings, self.store, self.loader, chosen, altered)

    def pair(
        self, dataset: str, model: str, images: int | None, tuning: Tuning | None = None
    ) -> Pair:
        """A dataset x model with its first images, or all; fine-tuned if that is asked for."""
        return self.loader.pair(dataset, model, images, tuning)

    def pair_of(self, network: nn.Module, data: Dataset) -> Pair:
        """A pair of a network that is not registered."""
        settings = self.settings
        return pair_of(network, data, "unregistered", settings.device, settings.precision)

    def training(self, pair: contracts.Pair, count: int) -> Pair:
        """The pair with the first images of the training split in place of the held-out ones."""
        return of_training(cast(Pair, pair), count)

    def trainer(self, pair: contracts.Pair) -> Callable[[Tensor, int], nn.Module]:
        """Trains the pair's architecture anew: on images in place of its own, for some epochs."""
        return trainer(cast(Pair, pair), self.settings.seed)

    def maps(self, pair: contracts.Pair, method: str) -> NDArray[np.float32]:
        """The maps of a registered method, from the store if they are there."""
        settings = replace(self.settings, images=len(pair.images))
        case = Case(pair.dataset.name, pair.model, "morf")
        maps = Evaluation(case, settings, self.store, self.loader).maps(find(method))
        return cast("NDArray[np.float32]", maps)

    def keep(
        self,
        name: str,
        pair: contracts.Pair,
        compute: Callable[[], dict[str, NDArray[np.generic]]],
        code: Callable[..., Any],
        other: contracts.Pair | None = None,
    ) -> dict[str, NDArray[np.generic]]:
        """Arrays that a check computes for a pair, from the store if `code` has not changed."""
        key = {**cast(Pair, pair).key, "method": of_code(code), "seed": str(self.settings.seed)}
        if other is not None:
            key["other"] = fingerprint(cast(Pair, other).key)
        entry = self.store.obtain(f"maps/{pair.name}/{name}", key, lambda: Entry(compute()))
        return entry.arrays

    def verdict(self, check: Check, protocol: str = "") -> Verdict:
        """The verdict on a protocol, or on nothing in particular, from the store if it can be.

        What a user's own check depends on is not known here, so it is run every time.
        """
        arguments = (protocol,) if protocol else ()
        if not check.run.__module__.startswith("attrcheck."):
            return check.run(self, *arguments)
        settings = self.settings
        subject = protocols.get(protocol).make(settings.profile) if protocol else None
        key = keys.of_verdict(
            self.code,
            protocol=(keys.of_observer(subject), keys.of_settings(subject)) if subject else "",
            profile=settings.profile,
            seed=settings.seed,
            device=torch.device(settings.device).type,
            **keys.of_precision(settings.precision),
        )
        name = f"checks/{check.name}/{protocol or 'suite'}"
        return self.stored_verdict(name, key, lambda: check.run(self, *arguments))

    def verdict_on(self, check: Check, case: Case) -> Verdict:
        """The verdict on a case, from the store unless the check is a user's own.

        Where a method fails it is not kept: the next run may know better.
        """
        if not check.run.__module__.startswith("attrcheck."):
            return check.run(self, case)
        evaluation = self.evaluation(case)
        key = {**evaluation.key, **keys.of_verdict(self.code, seed=self.settings.seed)}

        def look() -> Verdict:
            verdict = check.run(self, case)
            failed = any(outcome.status == "error" for outcome in evaluation.ended.values())
            if failed or case.dataset in self.loader.spoilt:
                raise UnsureError(verdict)
            return verdict

        try:
            return self.stored_verdict(f"checks/{check.name}/{case.id}", key, look)
        except UnsureError as unsure:
            return cast(Verdict, unsure.value)

    @property
    def code(self) -> str:
        """All code that may decide what a check finds; it is parsed if a byte of it has changed."""
        key = {"bytes": keys.of_deciding_bytes()}

        def parse() -> Entry:
            return Entry({}, {"code": keys.of_deciding_code()})

        return str(self.store.obtain("checks/code/deciding", key, parse).info["code"])

    def stored_verdict(self, name: str, key: Key, look: Callable[[], Verdict]) -> Verdict:
        """A verdict from the store, else found and kept."""

        def compute() -> Entry:
            verdict = look()
            passed = None if verdict.passed is None else bool(verdict.passed)
            figures = plain_figures(verdict.figures)
            reason = cut(str(verdict.reason))
            return Entry({}, {"passed": passed, "figures": figures, "reason": reason})

        return Verdict(**self.store.obtain(name, key, compute).info)

    def resamples(self, pair: contracts.Pair) -> NDArray[np.int64]:
        """How often each image is drawn in each bootstrap sample, [samples, images]."""
        return resample(len(pair.images), self.settings.seed, pair.name)
