"""Workers beyond the cores of the machine, which would load everything once more and gain nothing.

Four workers on two cores need twice the memory of two and are slower, since each imports torch,
reads networks and prepares them for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from attrcheck.engine.settings import cores

SCHEDULER = "worksteal"
"""The only scheduler of xdist that gives nothing to a worker which is shutting down."""


def dismiss(config: pytest.Config, nodes: Sequence[Any]) -> str:
    """Shut surplus workers down before anything is scheduled; what is to be said of it."""
    enough = cores()
    if len(nodes) <= enough or config.getoption("dist") != SCHEDULER:
        return ""
    for node in nodes[enough:]:
        node.shutdown()
    return f"{enough} of {len(nodes)} workers compute: this machine has {_counted(enough)}"


def _counted(number: int) -> str:
    return "one core" if number == 1 else f"{number} cores"
