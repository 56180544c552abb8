"""Checks: may a method compete, and can a protocol be trusted? Each is an item of the suites."""

from __future__ import annotations

from attrcheck.contracts import Check, Verdict
from attrcheck.registry import Registry

check = Registry("check", Check, __name__)

__all__ = ["Check", "Verdict", "check"]
