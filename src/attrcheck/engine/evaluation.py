"""Evaluate one case: maps, rows and scores of its methods, from the store or computed once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attrcheck.contracts import Case, Method, Protocol, Rows, Settings
from attrcheck.engine import keys
from attrcheck.engine.attribution import Reattribution, attribute, not_applicable, unchanged
from attrcheck.engine.observing import observe, observe_intact, observe_shared
from attrcheck.engine.pairs import Loader, Pair
from attrcheck.engine.resampling import interval, replicate, resample
from attrcheck.engine.results import CaseResult, Curve, Outcome, Provenance, join
from attrcheck.errors import AttrcheckError, MethodError, cut, text_of
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols
from attrcheck.store.digests import digest
from attrcheck.store.entries import BusyError, Entry, Key, Store, VerificationError
from attrcheck.tensors.batching import limited_to

Progress = Callable[[str], None]
PLAIN = (bool, int, float, type(None))


class FewImages(UserWarning):
    """A protocol that wants more images than it got: single images decide its scores."""


@dataclass(frozen=True)
class Evaluation:
    """One case at work: what its methods share, and how each is scored.

    instead: another protocol in place of the case's own. alter: what is done to the pair first.
    """

    case: Case
    settings: Settings
    store: Store
    loader: Loader
    instead: Protocol | None = None
    alter: Callable[[Pair], Pair] | None = None

    @cached_property
    def protocol(self) -> Protocol:
        """The protocol of this case."""
        return self.instead or protocols.get(self.case.protocol).make(self.settings.profile)

    @property
    def pair(self) -> Pair:
        """The loaded pair; loaded again after a method has spoilt it."""
        images, tuning = self.settings.images, self.protocol.tuning
        if tuning is not None:
            # A model of its own has maps of its own: none are made for images that do not count.
            images = self._most(images)
        pair = self.loader.pair(self.case.dataset, self.case.model, images, tuning)
        return self.alter(pair) if self.alter else pair

    @property
    def images(self) -> int:
        """How many images the protocol scores."""
        total = len(self.pair.images)
        return min(total, self._most(total) or total)

    def _most(self, images: int | None) -> int | None:
        most = self.protocol.most_images
        if most is None or self.settings.images_given:
            return images
        return most if images is None else min(images, most)

    @cached_property
    def intact(self) -> Rows:
        """What the model makes of the images as they are, once for all methods and protocols."""
        pair = self.pair
        name = f"shared/{self.case.pair}/intact"
        return self.store.obtain(name, pair.key, lambda: Entry(observe_intact(pair))).arrays

    @cached_property
    def shared(self) -> Rows:
        """What the protocol observes without a map, once for all methods."""
        shared = self.protocol.shared
        if shared is None:
            return {}
        pair, images, seed = self.pair, self.images, self.settings.seed

        def compute() -> Entry:
            return Entry(observe_shared(shared, pair, images, self.intact, seed))

        name = f"shared/{self.case.pair}/{shared.key}"
        key = {**keys.of_shared(pair.key, shared, images, seed), **self._declared}
        return self.store.obtain(name, key, compute).arrays

    def maps(self, method: Method, wait: bool = True) -> Entry:
        """The method's maps, which the protocols of the pair share."""
        if base := base_of(method):
            entry = self.maps(base, wait)
            return Entry({"maps": np.abs(entry.arrays["maps"])}, entry.info)
        pair, seed = self.pair, self.settings.seed

        def compute() -> Entry:
            with limited_to(self.settings.memory):
                return attribute(method, pair, seed)

        name = f"maps/{self.case.pair}/{method.name}"
        key = keys.of_maps(pair.key, key_of(method), seed)
        return self.store.obtain(name, key, compute, wait)

    def observe(self, method: Method, wait: bool = True) -> Entry | Outcome:
        """What the protocol observed of the method, from the store if nothing has changed."""
        if reason := not_applicable(method, self.pair):
            return Outcome("not_applicable", reason)
        pair, protocol, images = self.pair, self.protocol, self.images

        def compute() -> Entry:
            maps = self.maps(method, wait)
            base = base_of(method)
            again = Reattribution(
                base or method, pair, self.settings.seed, absolute=base is not None
            )
            intact, shared = self.intact, self.shared  # before passes are counted
            # Some protocols call the method again.
            watched = (
                unchanged(again.method, pair) if methods.is_own(method.name) else nullcontext()
            )
            with limited_to(self.settings.memory), watched:
                rows, passes = observe(
                    protocol, pair, images, maps.arrays["maps"], intact, shared, again
                )
            stated = list(map(float, method.passes))
            counted = {"attribution": stated, "observation": passes}
            return Entry(rows, {**maps.info, "passes": counted})

        observation = protocol.observation or self.case.protocol
        name = f"records/{self.case.pair}-{observation}/{method.name}"
        key = keys.of_rows(
            pair.key, key_of(method), protocol, images, self.settings.seed, self._training
        )
        return self.store.obtain(name, {**key, **self._declared}, compute, wait)

    @cached_property
    def _declared(self) -> Key:
        """What the protocol is declared to depend on beside its code."""
        spec = protocols.get(self.case.protocol)
        declared = keys.of_depends(spec.depends, spec.build)
        return {"declared by the protocol": digest(*declared)} if declared else {}

    @cached_property
    def _training(self) -> str:
        """What networks of the protocol's own learn from, where it trains some."""
        return keys.of_training(self.pair.reference) if self.protocol.training_images else ""

    def observe_all(self, progress: Progress = lambda text: None) -> dict[str, Entry | Outcome]:
        """What was observed of every method; one that fails fails alone, and the others go on.

        What another process is computing comes last: by then there is little to wait for.
        """
        names = self.settings.methods
        observed: dict[str, Entry | Outcome] = {}
        for wait in (False, True):
            for name in (name for name in names if name not in observed):
                progress(f"{self.case.id} {name}")
                try:
                    observed[name] = self.observe(find(name), wait)
                except BusyError:
                    continue
                except (MethodError, VerificationError) as error:
                    observed[name] = Outcome("error", str(error))
                    self.loader.forget(self.pair)
        return {name: observed[name] for name in names}

    def rows(self) -> dict[str, Rows]:
        """The rows of every method that is applicable and does not fail; the item tells who is."""
        observed = self.observe_all()
        return {name: entry.arrays for name, entry in observed.items() if isinstance(entry, Entry)}

    def settled(self, observed: dict[str, Entry | Outcome]) -> Protocol:
        """The protocol, after it has seen what all methods did."""
        rows = [entry.arrays for entry in observed.values() if isinstance(entry, Entry)]
        return self.protocol.settle(rows)

    def score(self, protocol: Protocol, observed: dict[str, Entry | Outcome]) -> dict[str, Outcome]:
        """Every method's outcome."""
        counts = resample(self.images, self.settings.seed, self.case.pair)
        return {
            name: entry if isinstance(entry, Outcome) else self._score(protocol, entry, counts)
            for name, entry in observed.items()
        }

    def _score(self, protocol: Protocol, entry: Entry, counts: NDArray[np.int64]) -> Outcome:
        reduction = protocol.reduce(entry.arrays)
        facts: dict[str, Any] = {
            "seconds": entry.info["seconds"] / len(self.pair.images),
            "constant_maps": entry.info["constant"],
            "undefined_images": reduction.undefined,
            "passes": entry.info["passes"],
            "fingerprint": entry.origin.fingerprint if entry.origin else "",
        }
        if not np.isfinite(reduction.score):
            reason = "the protocol defines no score for these maps"
            return Outcome("undefined", reason, **facts)
        replicates = replicate(protocol, entry.arrays, counts)
        low, high = interval(replicates)
        return Outcome(
            "ok",
            score=float(reduction.score),
            low=low,
            high=high,
            curve=Curve.of(reduction.curve),
            replicates=replicates,
            **facts,
        )


def run_case(evaluation: Evaluation, progress: Progress) -> CaseResult:
    """Score every method of a case."""
    torch.set_num_threads(evaluation.settings.threads)
    evaluation.store.open()
    _warn(evaluation)
    accuracy = float(evaluation.intact["correct"][: evaluation.images].mean())
    observed = evaluation.observe_all(progress)
    protocol = evaluation.settled(observed)
    return CaseResult(
        case=evaluation.case.id,
        higher_is_better=protocol.higher_is_better,
        images=evaluation.images,
        accuracy=accuracy,
        outcomes=evaluation.score(protocol, observed),
        protocol_settings=_settings(protocol),
        tuning=dict(evaluation.pair.tuned),
        problems=evaluation.store.take_problems(),
        provenance=join(
            Provenance(origin.stored, origin.versions, {evaluation.case.id: {name: origin.created}})
            for name, entry in observed.items()
            if isinstance(entry, Entry) and (origin := entry.origin) is not None
        ),
    )


def find(name: str) -> Method:
    """The method; one that cannot be imported fails alone like any other."""
    try:
        return methods.get(name)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise MethodError(f"method {name!r} cannot be loaded: {text_of(error)}") from error


def base_of(method: Method) -> Method | None:
    """The method whose maps this one takes the absolute values of, if there is one."""
    return find(method.absolute_of) if method.absolute_of else None


def key_of(method: Method) -> str:
    """What tells one version of a method from another."""
    base = base_of(method)
    try:
        return keys.of_method(method, base)
    except (AttrcheckError, KeyboardInterrupt):
        raise
    except BaseException as error:
        raise MethodError(
            f"method {method.name!r}: what it holds cannot be told from anything else, so that "
            f"its results cannot be kept: {text_of(error)}"
        ) from error


def _warn(evaluation: Evaluation) -> None:
    """Say so if there are fewer images than the protocol needs."""
    least = evaluation.protocol.least_images
    if evaluation.images < least:
        warnings.warn(
            f"{evaluation.case.protocol} wants at least {least} images and has "
            f"{evaluation.images}: single images decide its scores",
            FewImages,
            stacklevel=3,
        )


def _settings(protocol: Protocol) -> dict[str, Any]:
    """The protocol's settings, as JSON can hold them."""
    fields: dict[str, Any] = asdict(protocol) if is_dataclass(protocol) else {}
    return {
        name: value if isinstance(value, PLAIN) else cut(str(value))
        for name, value in sorted(fields.items())
    }
