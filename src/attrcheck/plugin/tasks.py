"""What a run with `--attr-shard` says in place of a board: what was computed, and how to go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from attrcheck.engine.results import Delivery
from attrcheck.plugin import options, scaling
from attrcheck.report.text import for_terminal


def lines(config: pytest.Config, deliveries: Sequence[Delivery]) -> list[str]:
    """The end of a task's output."""
    which, tasks = scaling.task(config) or (1, 1)
    stores = for_terminal(str(Path(options.value(config, "store")).parent / "*"))
    rules: list[str] = options.value(config, "gate")
    shown = [
        f"shard {which}/{tasks}: {_done(deliveries)}",
        "no board and no checks: they need the shards of all tasks",
    ]
    if rules:
        origin = options.gates_from(config)
        shown.append(for_terminal(f"gates not decided here: {len(rules)}, from: {origin}"))
    shown.append(
        f"when all {tasks} are done: `attrcheck merge {stores} --into STORE`, then this command "
        "with --attr-store=STORE and without --attr-shard"
    )
    return shown


def _done(deliveries: Sequence[Delivery]) -> str:
    """What was computed, in words."""
    records = sum(delivery.records for delivery in deliveries)
    stored = sum(delivery.stored for delivery in deliveries)
    counts = {(delivery.shards, delivery.of) for delivery in deliveries}
    if not any(shards for shards, _ in counts):
        return "nothing to compute: there are fewer shards than tasks, and none is this one's"
    if len(counts) == 1:
        shards, of = counts.pop()
        extent = f"{shards} of {of} shards of each case"
    else:
        shards, of = sum(d.shards for d in deliveries), sum(d.of for d in deliveries)
        extent = f"{shards} of {of} shards of {len(deliveries)} cases"
    known = f" ({stored} of them in the store already)" if stored else ""
    return f"{records} records{known}, {extent}"
