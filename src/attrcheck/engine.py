"""Run one case: attribute, observe, reduce and record, method by method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attrcheck.attribution import MethodError, attribute
from attrcheck.cases import Case
from attrcheck.fingerprint import digest, of_code
from attrcheck.loading import Setup, check, load
from attrcheck.memory import limited_to
from attrcheck.methods import Method
from attrcheck.methods import method as methods
from attrcheck.outcomes import outcome
from attrcheck.protocols import Protocol, Rows
from attrcheck.protocols import protocol as protocols
from attrcheck.resampling import interval, replicate, resample
from attrcheck.results import CaseResult, Outcome
from attrcheck.settings import Settings
from attrcheck.store import Entry, Store

Progress = Callable[[str], None]


def run_case(case: Case, settings: Settings, store: Store, progress: Progress) -> CaseResult:
    """Judge every method; one that fails fails alone, and the others go on."""
    torch.set_num_threads(settings.threads)
    store.open()
    bench = Bench(case, settings, store)
    accuracy = float(bench.intact["correct"].mean())
    counts = resample(len(bench.setup.images), settings.seed, case.pair)
    outcomes = {}
    for name in settings.methods:
        progress(f"{case.id} {name}")
        try:
            outcomes[name] = bench.judge(_find(name), counts)
        except MethodError as error:
            outcomes[name] = Outcome("error", str(error))
            load.cache_clear()  # the method may have spoilt the model for the next one
    return CaseResult(
        case=case.id,
        higher_is_better=bench.protocol.higher_is_better,
        images=len(bench.setup.images),
        accuracy=accuracy,
        outcomes=outcomes,
        problems=list(store.problems),
    )


@dataclass(frozen=True)
class Bench:
    """One case at work: what its methods share, and how each is judged."""

    case: Case
    settings: Settings
    store: Store

    @cached_property
    def protocol(self) -> Protocol:
        """The judge of this case."""
        return protocols.get(self.case.protocol).build()

    @property
    def setup(self) -> Setup:
        """The loaded pair; loaded again after a method has spoilt it."""
        settings = self.settings
        return load(self.case.dataset, self.case.model, settings.images, settings.device)

    @cached_property
    def intact(self) -> Rows:
        """What the model makes of the images as they are, once for all methods and protocols."""
        setup = self.setup

        def observe(part: slice) -> Rows:
            if part.start == 0:
                check(setup)
            return outcome(setup.network, setup.images[part], setup.labels[part])

        key = f"shared/{self.case.pair}/intact"
        fingerprint = digest(setup.fingerprint, of_code(outcome))
        return self.store.obtain(key, fingerprint, lambda: _each(setup, observe)).arrays

    @cached_property
    def shared(self) -> Rows:
        """What the protocol sees without a map, once for all methods."""
        setup, protocol = self.setup, self.protocol
        if not protocol.shared_key:
            return {}

        def observe(part: slice) -> Rows:
            batch = setup.batch(part, self.settings.seed, self.intact)
            return protocol.shared(setup.network, batch)

        key = f"shared/{self.case.pair}/{protocol.shared_key}"
        fingerprint = digest(setup.fingerprint, protocol.code, self.settings.seed)
        return self.store.obtain(key, fingerprint, lambda: _each(setup, observe)).arrays

    def maps(self, method: Method) -> Entry:
        """The method's maps, which the protocols of the pair share."""
        if method.absolute_of:
            base = self.maps(_find(method.absolute_of))
            return Entry({"maps": np.abs(base.arrays["maps"])}, base.info)
        setup, seed = self.setup, self.settings.seed
        fingerprint = digest(
            setup.fingerprint, method.name, of_code(method.attribute), version("captum"), seed
        )
        key = f"maps/{self.case.pair}/{method.name}"

        def compute() -> Entry:
            with limited_to(self.settings.memory):
                return attribute(method, setup, seed)

        return self.store.obtain(key, fingerprint, compute)

    def record(self, method: Method) -> Entry:
        """What the protocol observed of the method's maps, and what the maps cost."""
        setup, protocol, seed = self.setup, self.protocol, self.settings.seed

        def compute() -> Entry:
            maps = self.maps(method)

            def observe(part: slice) -> Rows:
                batch = setup.batch(part, seed, self.intact)
                shared = {name: row[part] for name, row in self.shared.items()}
                chosen = torch.from_numpy(maps.arrays["maps"][part]).to(setup.images.device)
                return protocol.observe(setup.network, batch, chosen, shared)

            return _each(setup, observe, maps.info)

        fingerprint = digest(
            setup.fingerprint,
            protocol.code,
            repr(protocol),
            method.name,
            of_code(method.attribute),
            version("captum"),
            seed,
        )
        return self.store.obtain(f"records/{self.case.id}/{method.name}", fingerprint, compute)

    def judge(self, method: Method, counts: NDArray[np.int64]) -> Outcome:
        """The method's outcome, from the store if nothing that it depends on has changed."""
        if reason := _applies(method, self.setup):
            return Outcome("not_applicable", reason)
        entry = self.record(method)
        reduction = self.protocol.reduce(entry.arrays)
        seconds = entry.info["seconds"] / len(self.setup.images)
        constant = entry.info["constant"]
        if not np.isfinite(reduction.score):
            reason = "the protocol defines no score for these maps"
            return Outcome("undefined", reason, seconds=seconds, constant=constant)
        replicates = replicate(self.protocol, entry.arrays, reduction.per_image, counts)
        low, high = interval(replicates)
        return Outcome(
            "ok",
            score=float(reduction.score),
            low=low,
            high=high,
            curve=reduction.curve,
            replicates=replicates,
            seconds=seconds,
            constant=constant,
        )


def _find(name: str) -> Method:
    """The method; one that cannot be imported fails alone like any other."""
    try:
        return methods.get(name)
    except Exception as error:
        raise MethodError(f"method {name!r} cannot be loaded: {error}") from error


def _applies(method: Method, setup: Setup) -> str | None:
    try:
        return method.applies(setup.network)
    except Exception as error:
        raise MethodError(
            f"method {method.name!r} on {setup.pair}: `applies` raised "
            f"{type(error).__name__}: {error}"
        ) from error


def _each(
    setup: Setup, observe: Callable[[slice], Rows], info: dict[str, Any] | None = None
) -> Entry:
    """Rows of every batch, joined."""
    parts = [observe(part) for part in setup.slices()]
    rows = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return Entry(rows, info or {})
