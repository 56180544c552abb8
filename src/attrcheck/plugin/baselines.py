"""What must be right before a run: the names in its gates, and the baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from attrcheck.deciding import unknown
from attrcheck.errors import AttrcheckError
from attrcheck.plugin import options
from attrcheck.report.baselines import Baseline


def check_gates(config: pytest.Config, names: Mapping[str, Sequence[str]]) -> None:
    """A usage error for a gate on what the run does not have; names: see `selection.names`."""
    for gate in options.gates(config):
        problem = unknown(gate, names)
        if gate.baseline and options.baseline(config) is None:
            problem = problem or "there is no baseline to compare with: give one by --attr-baseline"
        if problem:
            raise pytest.UsageError(f"gate {gate.text!r}: {problem}")


def baseline_of(config: pytest.Config) -> Baseline | None:
    """The baseline, if one is given; a usage error if it cannot be read."""
    path = options.baseline(config)
    if path is None:
        return None
    try:
        return Baseline.read(path, options.value(config, "baseline"))
    except AttrcheckError as error:
        raise pytest.UsageError(f"--attr-baseline: {error}") from error
