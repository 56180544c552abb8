"""One case at work: maps, rows and scores of its methods, from the store or computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from attrcheck.attribution import MethodError, Retrial, attribute
from attrcheck.cases import Case
from attrcheck.errors import AttrcheckError
from attrcheck.fingerprint import digest, of_code
from attrcheck.lessons import lessons
from attrcheck.loading import Setup, check, load
from attrcheck.memory import limited_to
from attrcheck.methods import Method
from attrcheck.methods import method as methods
from attrcheck.models._fast import Fast
from attrcheck.outcomes import joined, outcome
from attrcheck.protocols import Protocol, Rows
from attrcheck.protocols import protocol as protocols
from attrcheck.resampling import interval, replicate, resample
from attrcheck.results import Outcome
from attrcheck.settings import Settings
from attrcheck.store import BusyError, Entry, Store


@dataclass(frozen=True)
class Bench:
    """One case at work: what its methods share, and how each is judged.

    instead: another judge in the place of the case's own. alter: what is done to the pair first.
    """

    case: Case
    settings: Settings
    store: Store
    instead: Protocol | None = None
    alter: Callable[[Setup], Setup] = lambda setup: setup

    @cached_property
    def protocol(self) -> Protocol:
        """The judge of this case."""
        return self.instead or protocols.get(self.case.protocol).make(self.settings.profile)

    @property
    def setup(self) -> Setup:
        """The loaded pair; loaded again after a method has spoilt it."""
        case, settings, tuning = self.case, self.settings, self.protocol.tuning
        if tuning is None:
            return self.alter(load(case.dataset, case.model, settings.images, settings.device))
        # A model of its own has maps of its own: none are made for images that it does not judge.
        args = (case.dataset, case.model, self._most(settings.images), settings.device)
        return self.alter(load(*args, tuning, settings))

    @property
    def images(self) -> int:
        """How many images the protocol judges."""
        total = len(self.setup.images)
        return min(total, self._most(total) or total)

    def _most(self, images: int | None) -> int | None:
        most = self.protocol.most_images
        if most is None or self.settings.images_given:
            return images
        return most if images is None else min(images, most)

    @cached_property
    def intact(self) -> Rows:
        """What the model makes of the images as they are, once for all methods and protocols."""
        setup = self.setup

        def observe(part: slice) -> Rows:
            if part.start == 0:
                check(setup)
            return outcome(setup.judge, setup.images[part], setup.labels[part])

        key = f"shared/{self.case.pair}/intact"
        fingerprint = digest(setup.fingerprint, of_code(outcome))
        return self.store.obtain(key, fingerprint, lambda: _each(setup, None, observe)).arrays

    @cached_property
    def shared(self) -> Rows:
        """What the protocol sees without a map, once for all methods."""
        setup, shared, seed = self.setup, self.protocol.shared, self.settings.seed
        if shared is None:
            return {}

        def observe(part: slice) -> Rows:
            return shared.observe(setup.judge, setup.batch(part, seed, self.intact))

        key = f"shared/{self.case.pair}/{shared.key}"
        images = self.images
        fingerprint = digest(setup.fingerprint, shared.code, repr(shared), images, seed)
        return self.store.obtain(key, fingerprint, lambda: _each(setup, images, observe)).arrays

    def maps(self, method: Method) -> Entry:
        """The method's maps, which the protocols of the pair share."""
        if method.absolute_of:
            base = self.maps(_base(method))
            return Entry({"maps": np.abs(base.arrays["maps"])}, base.info)
        setup, seed = self.setup, self.settings.seed
        fingerprint = digest(setup.fingerprint, *marks(method), seed)
        key = f"maps/{self.case.pair}/{method.name}"

        def compute() -> Entry:
            with limited_to(self.settings.memory):
                return attribute(method, setup, seed)

        return self.store.obtain(key, fingerprint, compute)

    def observe(self, method: Method) -> Entry | Outcome:
        """What the protocol observed of the method, from the store if nothing has changed."""
        if reason := _applies(method, self.setup):
            return Outcome("not_applicable", reason)
        setup, protocol, seed = self.setup, self.protocol, self.settings.seed
        name = protocol.observation or self.case.protocol

        def compute() -> Entry:
            maps = self.maps(method)
            retrial = Retrial(_base(method), setup, seed, absolute=bool(method.absolute_of))
            intact, shared = self.intact, self.shared  # before passes are counted

            def observe(part: slice) -> Rows:
                batch = replace(setup.batch(part, seed, intact), attribute=retrial.on(part))
                chosen = torch.from_numpy(maps.arrays["maps"][part]).to(setup.images.device)
                own = {name: row[part] for name, row in shared.items()}
                with _judging(method, setup, part):
                    return protocol.observe(model, batch, chosen, own)

            model: nn.Module = setup.judge
            with limited_to(self.settings.memory):
                if protocol.lessons:
                    model = protocol.retrain(lessons(retrial, protocol.lessons))
                before = _passes(model)
                rows = _each(setup, self.images, observe).arrays
            looks = np.array([_passes(model) - before, 0]) + retrial.passes
            stated = list(map(float, method.passes))
            passes = {"attribution": stated, "observation": (looks / self.images).tolist()}
            return Entry(rows, {**maps.info, "passes": passes})

        fingerprint = digest(
            setup.fingerprint,
            protocol.code,
            protocol.observation or repr(protocol),
            of_code(lessons) if protocol.lessons else "",
            self.images,
            *marks(method),
            seed,
        )
        key = f"records/{self.case.pair}-{name}/{method.name}"
        return self.store.obtain(key, fingerprint, compute)

    def observe_all(
        self, progress: Callable[[str], None] = lambda text: None
    ) -> dict[str, Entry | Outcome]:
        """What was observed of every method; one that fails fails alone, and the others go on.

        What another process is at work on comes last: by then there is little to wait for.
        """
        names = self.settings.methods
        found: dict[str, Entry | Outcome] = {}
        for patient in (False, True):
            self.store.patient = patient
            for name in (name for name in names if name not in found):
                progress(f"{self.case.id} {name}")
                try:
                    found[name] = self.observe(find(name))
                except BusyError:
                    continue
                except MethodError as error:
                    found[name] = Outcome("error", str(error))
                    load.cache_clear()  # the method may have spoilt the model for the next one
        return {name: found[name] for name in names}

    def rows(self) -> dict[str, Rows]:
        """The rows of every method that applies and does not fail; the case's item tells who."""
        found = self.observe_all()
        return {name: entry.arrays for name, entry in found.items() if isinstance(entry, Entry)}

    def settle(self, found: dict[str, Entry | Outcome]) -> Protocol:
        """The judge, after it has seen what all methods did."""
        rows = [entry.arrays for entry in found.values() if isinstance(entry, Entry)]
        return self.protocol.settle(rows)

    def score(self, judge: Protocol, found: dict[str, Entry | Outcome]) -> dict[str, Outcome]:
        """Every method's outcome."""
        counts = resample(self.images, self.settings.seed, self.case.pair)
        return {
            name: entry if isinstance(entry, Outcome) else self._score(judge, entry, counts)
            for name, entry in found.items()
        }

    def _score(self, judge: Protocol, entry: Entry, counts: NDArray[np.int64]) -> Outcome:
        reduction = judge.reduce(entry.arrays)
        facts = {
            "seconds": entry.info["seconds"] / len(self.setup.images),
            "constant": entry.info["constant"],
            "undefined": reduction.undefined,
            "passes": entry.info["passes"],
        }
        if not np.isfinite(reduction.score):
            reason = "the protocol defines no score for these maps"
            return Outcome("undefined", reason, **facts)
        replicates = replicate(judge, entry.arrays, reduction.per_image, counts)
        low, high = interval(replicates)
        return Outcome(
            "ok",
            score=float(reduction.score),
            low=low,
            high=high,
            curve=reduction.curve,
            replicates=replicates,
            **facts,
        )


def find(name: str) -> Method:
    """The method; one that cannot be imported fails alone like any other."""
    try:
        return methods.get(name)
    except Exception as error:
        raise MethodError(f"method {name!r} cannot be loaded: {error}") from error


def _base(method: Method) -> Method:
    """The method whose maps this one takes the absolute values of, else the method itself."""
    return find(method.absolute_of) if method.absolute_of else method


def marks(method: Method) -> tuple[str, ...]:
    """What tells one version of a method, and of the one that it rests on, from another."""
    base = marks(find(method.absolute_of)) if method.absolute_of else ()
    return method.name, of_code(method.attribute), version("captum"), *base


def _applies(method: Method, setup: Setup) -> str | None:
    try:
        return method.applies(setup.network)
    except Exception as error:
        raise MethodError(
            f"method {method.name!r} on {setup.pair}: `applies` raised "
            f"{type(error).__name__}: {error}"
        ) from error


@contextmanager
def _judging(method: Method, setup: Setup, part: slice) -> Iterator[None]:
    """Say whose maps, and of which images, a judge could not cope with."""
    try:
        yield
    except (AttrcheckError, BusyError):  # of the dataset, the model or the store
        raise
    except Exception as error:
        raise MethodError(
            f"judging method {method.name!r} on {setup.pair} raised {type(error).__name__} in the "
            f"batch that starts with image {setup.dataset.ids[part][0]!r}: {error}"
        ) from error


def _passes(model: nn.Module) -> int:
    """The images that have gone through a judge, or through the networks that take its place."""
    return sum(part.passes for part in model.modules() if isinstance(part, Fast))


def _each(setup: Setup, images: int | None, observe: Callable[[slice], Rows]) -> Entry:
    """Rows of every batch of the first `images`, or of all, joined."""
    return Entry(joined([observe(part) for part in setup.slices(images)]))
