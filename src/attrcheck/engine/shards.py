"""Evaluate one shard of a case: maps and rows of each method, from the store or computed once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from attrcheck.contracts import Case, Method, Protocol, Rows, Settings
from attrcheck.engine import keys
from attrcheck.engine.applying import refusal
from attrcheck.engine.attribution import (
    Reattribution,
    attribute,
    constant_maps,
    unchanged,
)
from attrcheck.engine.finding import base_of
from attrcheck.engine.observing import observe, observe_intact, observe_shared
from attrcheck.engine.pairs import Pair
from attrcheck.engine.results import Outcome
from attrcheck.errors import NotApplicableError
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.responses import joined, named
from attrcheck.store.digests import digest
from attrcheck.store.encoding import Entry, Key, Origin
from attrcheck.store.entries import Store
from attrcheck.tensors.batching import limited_to


@dataclass(frozen=True)
class Shard:
    """Some images of a case at work: what its methods share, and what is observed of each.

    number: which shard. images: how many of its images the protocol scores. load: gives the pair
    as a protocol, or a part of it, wants it, again after a method has spoilt it. plain: the same
    with the images of the dataset, where the protocol arranges others.
    """

    case: Case
    protocol: Protocol
    settings: Settings
    store: Store
    load: Callable[[Protocol], Pair]
    plain: Callable[[], Pair]
    number: int
    images: int

    @property
    def name(self) -> str:
        """The id of the case, with the number of the shard if it is not the first."""
        return self._named(self.case.id)

    @property
    def pair(self) -> Pair:
        """The loaded pair."""
        return self.load(self.protocol)

    @cached_property
    def intact(self) -> Rows:
        """What the model makes of the images as they are, once for all methods and protocols."""
        pair, (name, key) = self.plain(), self.common[0]
        return self.store.obtain(name, key, lambda: Entry(observe_intact(pair))).arrays

    @cached_property
    def shared(self) -> Rows:
        """What the protocol observes without a map, once for all methods."""
        shared = self.protocol.shared
        if shared is None:
            return {}
        pair, seed = self.pair, self.settings.seed

        def compute() -> Entry:
            return Entry(observe_shared(shared, pair, self.images, self.intact, seed))

        name, key = self.common[1]
        return self.store.obtain(name, key, compute).arrays

    @property
    def common(self) -> list[tuple[str, Key]]:
        """Names and keys of what all methods share: the images as they are, then `shared`."""
        shared = self.protocol.shared
        entries = [(self._named(f"shared/{self.case.pair}/intact"), self.plain().key)]
        if shared is not None:
            key = keys.of_shared(self.pair.key, shared, self.images, self.settings.seed)
            name = self._named(f"shared/{self.case.pair}/{shared.key}")
            entries.append((name, {**key, **self._declared}))
        return entries

    def maps(self, method: Method, wait: bool = True) -> Entry:
        """The method's maps, which the protocols of the pair share."""
        if base := base_of(method):
            entry = self.maps(base, wait)
            return Entry({"maps": np.abs(entry.arrays["maps"])}, entry.info)
        pair, seed = self.pair, self.settings.seed

        def compute() -> Entry:
            with limited_to(self.settings.memory, self.settings.sharers):
                return attribute(method, pair, seed)

        name = self._named(f"maps/{self.case.pair}/{method.name}")
        key = keys.of_maps(pair.key, key_of(method), seed)
        return self.store.obtain(name, key, compute, wait)

    def observe(self, method: Method, wait: bool = True) -> Entry | Outcome:
        """What the protocol observed of the method, from the store if nothing has changed."""
        if self._parts:
            return _together(
                {name: part.observe(method, wait) for name, part in self._parts.items()},
                apart=self.protocol.arranges,
            )
        try:
            reason = refusal(method, self.pair, self.store)
        except NotApplicableError as error:
            reason = str(error)
        if reason:
            return Outcome("not_applicable", reason)
        pair, protocol = self.pair, self.protocol

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
            with limited_to(self.settings.memory, self.settings.sharers), watched:
                rows, passes = observe(
                    protocol, pair, self.images, maps.arrays["maps"], intact, shared, again
                )
            stated = list(map(float, method.passes))
            counted = {"attribution": stated, "observation": passes}
            # Of the images that are scored: a shard may have more.
            constant = int(constant_maps(maps.arrays["maps"][: self.images]).sum())
            return Entry(rows, {**maps.info, "constant": constant, "passes": counted})

        return self.store.obtain(self._record(method), self.key(method), compute, wait)

    def has(self, method: Method) -> bool:
        """Whether the store has a record of the method, as far as its name and key tell."""
        if self._parts:
            return all(part.has(method) for part in self._parts.values())
        return self.store.has(self._record(method), self.key(method))

    def key(self, method: Method, of: Key | None = None, images: int | None = None) -> Key:
        """All that decides what is observed of the method, here or on other images of the pair."""
        pair, seed = of or self.pair.key, self.settings.seed
        count, method_key = images or self.images, key_of(method)
        key = keys.of_rows(pair, method_key, self.protocol, count, seed, self._training)
        return {**key, **self._declared}

    @cached_property
    def _parts(self) -> dict[str, Shard]:
        """The same images under the protocols whose rows this one is reduced from."""
        return {name: replace(self, protocol=part) for name, part in self.protocol.parts.items()}

    def _record(self, method: Method) -> str:
        observation = self.protocol.observation or self.case.protocol
        return self._named(f"records/{self.case.pair}-{observation}/{method.name}")

    def _named(self, name: str) -> str:
        """The name of an entry; those of the first shard, often the only one, have no number."""
        return f"{name}@{self.number}" if self.number else name

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


def _together(parts: Mapping[str, Entry | Outcome], apart: bool) -> Entry | Outcome:
    """What several protocols observed of one method, as one entry.

    apart: whether each had maps of its own, so that what these cost adds up.
    """
    for observed in parts.values():
        if isinstance(observed, Outcome):
            return observed
    entries = {name: entry for name, entry in parts.items() if isinstance(entry, Entry)}
    facts = [entry.info for entry in entries.values()]

    def summed(name: str) -> list[float]:
        passes: list[float] = np.sum([fact["passes"][name] for fact in facts], axis=0).tolist()
        return passes

    info = {**facts[0], "passes": {**facts[0]["passes"], "observation": summed("observation")}}
    if apart:
        info["seconds"] = sum(fact["seconds"] for fact in facts)
        info["passes"]["attribution"] = summed("attribution")
    rows = named({name: entry.arrays for name, entry in entries.items()})
    return Entry(rows, info, _origin(entries.values()))


def _origin(entries: Iterable[Entry]) -> Origin:
    """Where entries come from, as if they were one."""
    origins = [entry.origin for entry in entries if entry.origin is not None]
    return Origin(
        fingerprint=digest(*(origin.fingerprint for origin in origins)),
        stored=all(origin.stored for origin in origins),
        created=max(origin.created for origin in origins),
        versions=origins[-1].versions,
    )


def joined_entry(entries: list[Entry], images: list[int]) -> Entry:
    """What was observed shard by shard, of so many images each, as one entry."""
    if len(entries) == 1:
        return entries[0]
    first = entries[0]
    passes = np.array([entry.info["passes"]["observation"] for entry in entries])
    # Whole numbers again, so that no rounding tells how many shards there were.
    spent = np.rint(np.array(images)[:, None] * passes).sum(axis=0)
    info = {
        "seconds": sum(entry.info["seconds"] for entry in entries),
        "constant": sum(entry.info["constant"] for entry in entries),
        "images": sum(entry.info["images"] for entry in entries),
        "passes": {
            **first.info["passes"],
            "observation": (spent / sum(images)).tolist(),
        },
    }
    return Entry(joined([entry.arrays for entry in entries]), info, _origin(entries))


def key_of(method: Method) -> str:
    """What tells one version of a method from another."""
    base = base_of(method)
    with keys.identifying(method):
        return keys.of_method(method, base)
