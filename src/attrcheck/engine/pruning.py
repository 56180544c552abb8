"""Which entries of a store no run would find any more, because code or libraries have changed.

Told by the parts of their keys. Data and weights are not looked at, which would mean to load every
network; names that are not registered here, as those of a project's conftest, are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from attrcheck.contracts import Protocol, Shared
from attrcheck.engine import keys
from attrcheck.engine.settings import PROFILES
from attrcheck.engine.shards import key_of
from attrcheck.methods import method as methods
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import RegistryError
from attrcheck.removal import removal as removals
from attrcheck.store.fingerprints import of_code
from attrcheck.store.inventory import Item


@dataclass(frozen=True)
class Current:
    """What keys are made of today."""

    def changed(self, item: Item) -> list[str]:
        """The parts of an entry's key that have changed since; none if it may still be found."""
        return [part for part, value in item.key.items() if self._differs(item, part, value)]

    def _differs(self, item: Item, part: str, value: str) -> bool:
        if part in self._plain:
            return value != self._plain[part]
        if part == "protocol" and item.kind in ("records", "shared"):
            known = self._observers.get(_observation(item))
            return known is not None and value not in known
        if part == "method" and item.kind in ("records", "maps"):
            return _known(lambda: key_of(methods.get(_last(item))), value)
        if part == "applies":
            return _known(lambda: keys.of_applying(methods.get(_last(item))), value)
        if part == "model" and item.kind != "checks":
            name = item.name.split("/")[1].split("-")[1]
            return _known(lambda: of_code(models.get(name).build), value)
        return False

    @cached_property
    def _plain(self) -> dict[str, str]:
        pair = keys.of_preparation()
        code = {"code": keys.of_deciding_code(), "bytes": keys.of_deciding_bytes()}
        return {**pair, **code, "torch": str(torch.__version__)}

    @cached_property
    def _observers(self) -> dict[str, set[str]]:
        """The code of every protocol, and of what it shares, by the name of what is observed."""
        known: dict[str, set[str]] = {}
        for name, observer in _observers():
            known.setdefault(name, set()).add(keys.of_observer(observer))
        return known


def _observation(item: Item) -> str:
    """What an entry is an observation of, as in records/digits-resnet-NAME/lrp, shared/.../NAME."""
    place = item.name.split("/")[1]
    return _last(item) if item.kind == "shared" else place.split("-", 2)[2]


def _last(item: Item) -> str:
    """The last part of a name, without the number of a shard."""
    return item.name.rpartition("/")[2].partition("@")[0]


def _observers() -> Iterator[tuple[str, Protocol | Shared]]:
    """Every registered protocol in every profile, and what it shares, with every removal."""
    for name in protocols:
        for profile in PROFILES:
            protocol: Any = protocols.get(name).make(profile)
            versions = [protocol]
            if "removal" in getattr(protocol, "__dataclass_fields__", {}):
                versions = [replace(protocol, removal=removal) for removal in removals]
            for version in versions:
                yield version.observation or name, version
                if version.shared is not None:
                    yield version.shared.key, version.shared


def _known(compute: Callable[[], str], value: str) -> bool:
    """Whether a part is another one today; what is not registered here cannot be said to be."""
    try:
        return compute() != value
    except RegistryError:
        return False
