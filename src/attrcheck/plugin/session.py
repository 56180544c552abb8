"""The controller's memory of a run: which items were collected, and what each of them sent."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from attrcheck.errors import cause

if TYPE_CHECKING:
    from attrcheck.engine.results import (
        CaseResult,
        CheckResult,
        Delivery,
        Envelope,
        Exhibit,
        LawResult,
    )


@dataclass
class Session:
    """What is expected, by node id, and what came, by the id of the item.

    run: tells this run from others. excused: items that were skipped, or that passed and sent
    nothing; they are not missing, but gates must know. repeated: items that failed for causes that
    an earlier one has shown. done: items that ran, also those of others.
    """

    run: str = field(default_factory=lambda: os.urandom(16).hex())
    started: float = field(default_factory=time.time)
    expected: dict[str, str] = field(default_factory=dict)
    excused: dict[str, str] = field(default_factory=dict)
    envelopes: dict[str, Envelope] = field(default_factory=dict)
    repeated: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    _causes: set[str] = field(default_factory=set)

    def expect(self, items: Mapping[str, str]) -> None:
        """Note items of attrcheck that were collected: node ids, and ids to send results under."""
        self.expected.update(items)

    def take(self, text: str) -> None:
        """Note what an item sent."""
        # Only now: both import numpy, which an idle plugin must not.
        from attrcheck.engine.results import Envelope
        from attrcheck.engine.wire import loads

        envelope = loads(Envelope, text)
        self.envelopes[envelope.id] = envelope

    def excuse(self, node_id: str) -> None:
        """Expect nothing of an item that was skipped, or that passed without sending anything."""
        if node_id in self.expected:
            self.excused[node_id] = self.expected.pop(node_id)

    def fail(self, node_id: str, text: str) -> None:
        """Note that an item failed with this text; whether it says anything new."""
        item = self.expected.get(node_id)
        if item is None:
            return
        sent = self.envelopes.get(item)
        if sent is not None and sent.case is not None:
            reasons = [
                *(o.reason for o in sent.case.outcomes.values() if o.status == "error"),
                *sent.case.problems,
            ]
        elif sent is not None and (finding := sent.check or sent.law) is not None:
            # Other than an error of the method, what a check or a law finds is its own.
            ours = finding.reason.startswith("method ")
            reasons = [finding.reason if ours else f"{item}: {finding.reason}"]
        else:
            reasons = [text.removeprefix(f"{item}: ")]
        causes = {cause(reason) for reason in reasons}
        if causes <= self._causes:
            self.repeated.add(node_id)
        self._causes |= causes

    def count(self) -> tuple[int, int]:
        """How many items of attrcheck are done, and of how many."""
        items = {*self.expected, *self.excused}
        return len(self.done & items), len(items)

    def is_finding(self, node_id: str) -> bool:
        """Whether an item sent what it found of a protocol on a user's own data."""
        sent = self.envelopes.get(self.expected.get(node_id, ""))
        return sent is not None and sent.check is not None and sent.check.status == "finding"

    @property
    def used(self) -> bool:
        """Whether attrcheck has any part in the run."""
        return bool(self.expected or self.excused or self.envelopes)

    @property
    def cases(self) -> list[CaseResult]:
        """The results of cases in the order of their ids, whoever came first."""
        return [sent.case for sent in self.in_order if sent.case is not None]

    @property
    def checks(self) -> list[CheckResult]:
        """The results of checks, likewise."""
        return [sent.check for sent in self.in_order if sent.check is not None]

    @property
    def laws(self) -> list[LawResult]:
        """The results of laws, likewise."""
        return [sent.law for sent in self.in_order if sent.law is not None]

    @property
    def exhibits(self) -> list[Exhibit]:
        """The images and maps that were sent, likewise."""
        return [sent.exhibit for sent in self.in_order if sent.exhibit is not None]

    @property
    def deliveries(self) -> list[Delivery]:
        """What was done of the shards of one task, likewise."""
        return [sent.delivery for sent in self.in_order if sent.delivery is not None]

    @property
    def in_order(self) -> list[Envelope]:
        """All that was sent, in the order of ids."""
        return [self.envelopes[item] for item in sorted(self.envelopes)]

    @property
    def unsteady(self) -> list[str]:
        """Methods whose keys differ between processes of this run: no later run has them either."""
        keys: dict[str, set[str]] = {}
        for sent in self.in_order:
            for method, key in sent.keys.items():
                keys.setdefault(method, set()).add(key)
        return sorted(method for method, different in keys.items() if len(different) > 1)

    @property
    def missing(self) -> list[str]:
        """Items that were collected and sent nothing: crashed, never run, or failed to load."""
        return sorted({*self.expected.values()} - self.envelopes.keys())

    @property
    def skipped(self) -> list[str]:
        """Items without a result that the user chose to skip."""
        return sorted({*self.excused.values()} - self.envelopes.keys() - {*self.missing})
