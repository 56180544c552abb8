"""Compare what the store holds with what is computed today, rounding aside."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDING = 1e-5
"""Of an array's largest value: threads and instruction sets move floats by far less."""

ASIDE = {"created", "reason", "seconds"}
"""Facts that may differ, at any depth: words and times."""


def arrays_differ(
    one: Mapping[str, NDArray[np.generic]], other: Mapping[str, NDArray[np.generic]]
) -> str:
    """The first difference between arrays that rounding does not explain, in words; or nothing."""
    if one.keys() != other.keys():
        return f"it has {sorted(one)}, not {sorted(other)}"
    for name, stored in one.items():
        computed = other[name]
        if stored.shape != computed.shape or stored.dtype != computed.dtype:
            kinds = [f"{array.dtype}{list(array.shape)}" for array in (stored, computed)]
            return f"{name} is {kinds[0]}, not {kinds[1]}"
        if np.issubdtype(stored.dtype, np.inexact):
            scale = float(np.nanmax(np.abs(stored), initial=0.0))
            same = np.isclose(stored, computed, rtol=0, atol=ROUNDING * scale, equal_nan=True)
        else:
            same = stored == computed
        if not same.all():
            return f"{int((~same).sum())} of {same.size} values of {name} differ"
    return ""


def facts_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """The first fact that differs, words and times aside; or nothing."""
    for name in sorted({*one, *other} - ASIDE):
        if not _alike(one.get(name), other.get(name)):
            return f"{name} is {one.get(name)}, not {other.get(name)}"
    return ""


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        telling = one.keys() - ASIDE
        return one.keys() == other.keys() and all(
            _alike(one[name], other[name]) for name in telling
        )
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return bool(one == other)
