"""The controller's memory of a run: which items were collected, and what each of them sent."""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from attrcheck.checks import check as checks
from attrcheck.datasets import dataset as datasets
from attrcheck.methods import method as methods
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.registry import Registry

PARAMETERS = re.compile(r"\[(?P<id>[^\[\]]+)\]$")


@dataclass
class Session:
    """Payloads by item id. Under xdist the controller sees only node ids, so it goes by those."""

    run: str = field(default_factory=lambda: uuid.uuid4().hex)
    started: float = field(default_factory=time.time)
    expected: set[str] = field(default_factory=set)
    payloads: dict[str, dict[str, Any]] = field(default_factory=dict)

    def expect(self, node_ids: list[str]) -> None:
        """Note which of the collected items are attrcheck's."""
        found = (PARAMETERS.search(node_id) for node_id in node_ids)
        self.expected.update(match["id"] for match in found if match and _is_ours(match["id"]))

    def dismiss(self, node_id: str) -> None:
        """Expect nothing of an item that went well but sent nothing: it only looks like ours."""
        if (match := PARAMETERS.search(node_id)) and match["id"] not in self.payloads:
            self.expected.discard(match["id"])

    def take(self, text: str) -> None:
        """Note what an item sent."""
        payload = json.loads(text)
        self.payloads[payload["id"]] = payload

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """What items of a kind sent, in the order of their ids, whoever came first."""
        found = (self.payloads[item] for item in sorted(self.payloads))
        return [payload for payload in found if payload["kind"] == kind]

    @property
    def missing(self) -> list[str]:
        """Items that were collected and sent nothing: crashed, never run, or failed to load."""
        return sorted(self.expected - self.payloads.keys())


def selection(cases: Iterable[str], methods: Iterable[str]) -> str:
    """What tells a choice of cases and methods from another of the same size."""
    from attrcheck.store.fingerprints import digest  # not at the start of every pytest run

    return digest(sorted(cases), sorted(methods))


def _is_ours(text: str) -> bool:
    """A case, or a check and what it looks at: a method, a protocol, a model, one or two cases."""
    if is_case(text):
        return True
    check, *parts = text.split("-")
    if check not in checks or not parts:
        return False
    if len(parts) == 1:
        return parts[0] == "suite" or parts[0] in methods or parts[0] in protocols
    if len(parts) == 2:
        return parts[0] in datasets and parts[1] in models
    return all(is_case("-".join(parts[at : at + 3])) for at in range(0, len(parts), 3))


def is_case(text: str) -> bool:
    """Whether this is the id of a case whose three names are known."""
    parts = text.split("-")
    kinds: tuple[Registry[Any], ...] = (datasets, models, protocols)
    return len(parts) == 3 and all(name in kind for name, kind in zip(parts, kinds, strict=True))
