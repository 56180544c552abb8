"""Digests: a short hash of plain values, arrays and tensors, the same on every machine."""

from __future__ import annotations

import hashlib
import sys
from typing import Any

import numpy as np


def digest(*parts: Any) -> str:
    """Sixteen hex digits of all parts; tensors and arrays count with dtype, shape and bytes."""
    hasher = hashlib.sha256()
    for part in parts:
        _feed(hasher, part)
    return hasher.hexdigest()[:16]


def _feed(hasher: Any, part: Any) -> None:
    if type(part) is str:  # as most are
        hasher.update(repr(part).encode() + b"\0")
        return
    if isinstance(part, dict):
        part = list(part.items())
    if isinstance(part, tuple | list):
        # Item by item: an array inside would be printed rounded, and cut short.
        hasher.update(f"{type(part).__name__}{len(part)}".encode())
        for item in part:
            _feed(hasher, item)
    elif isinstance(part, np.ndarray | np.generic) or is_tensor(part):
        kind, values = _array(part)
        hasher.update(f"{kind}{values.shape}".encode())
        hasher.update(values.tobytes())
    else:
        hasher.update(repr(part).encode())
    hasher.update(b"\0")


def is_tensor(value: Any) -> bool:
    """Whether it is a tensor of torch; nothing is where torch was never imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def _array(value: Any) -> tuple[str, np.ndarray[Any, Any]]:
    """The name of the dtype and the values of an array, or of a tensor of any layout."""
    if isinstance(value, np.ndarray | np.generic):
        values = np.asarray(value)
        if values.dtype.hasobject:
            return "object", np.array([digest(item) for item in values.ravel().tolist()])
        return str(values.dtype), values
    kind = str(value.dtype).removeprefix("torch.")
    value = value.detach()
    if value.is_meta:
        return f"{kind} meta {tuple(value.shape)}", np.empty(0)
    if value.is_nested:
        return f"{kind} nested", np.array([digest(part.cpu()) for part in value.unbind()])
    value = (value.dequantize() if value.is_quantized else value).cpu().to_dense()
    # numpy has no bfloat16.
    return kind, (value.float() if kind == "bfloat16" else value).resolve_conj().numpy()
