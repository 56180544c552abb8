"""Checks: sanity checks of methods, each an item of the suites with figures and a verdict."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from attrcheck.registry import Registry


@dataclass(frozen=True)
class Verdict:
    """What a check found: passed or not, the figures it looked at, and why it failed."""

    passed: bool
    figures: dict[str, float] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Check:
    """A registered check: `run(method, setup)` judges one method on one dataset x model."""

    name: str
    run: Callable[..., Verdict]


check = Registry("check", Check, __name__)
