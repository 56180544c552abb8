"""Checks: may a method compete, and may a judge be trusted? Each is an item of the suites."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrcheck.registry import Registry

if TYPE_CHECKING:
    from attrcheck.protocols import Protocol

Over: TypeAlias = Literal["methods", "cases", "case_pairs", "protocols", "models", "suite"]


@dataclass(frozen=True)
class Verdict:
    """What a check found: passed or not, the figures it looked at, and why it failed.

    Figures are numbers, or lists of them for curves. None in the place of `passed`: there was not
    enough to judge by, and `reason` says what was missing.
    """

    passed: bool | None
    figures: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Check:
    """A registered check. What it ranges over says what `run` is called with:

    methods: (method, setup), on a dataset x model to which the method applies
    cases: (lab, case); case_pairs: (lab, one, other), which differ in one name only
    protocols: (lab, protocol), the name of it; models: (lab, dataset, model)
    suite: (lab); once

    fits: whether a protocol is one to ask. default: whether it runs unasked in any profile but
    full. sampled: in any profile but full, one embedded model a dataset stands for all of them.
    known_failures: protocols for which it is known to fail, in some case at least, or other
    subjects, and why. A failure that is not known turns the item red.
    """

    name: str
    run: Callable[..., Verdict]
    over: Over = "methods"
    fits: Callable[[Protocol], bool] = lambda protocol: True
    default: bool = True
    sampled: bool = False
    known_failures: Mapping[str, str] = field(default_factory=dict)


check = Registry("check", Check, __name__)
