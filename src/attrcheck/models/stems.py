"""How the first layer of an embedded model suits the size of its pictures."""

from __future__ import annotations

from attrcheck.contracts import Dataset


def stride(dataset: Dataset) -> int:
    """Of the first layer: 2 at 32 pixels, 4 at 64, so that all families end on an 8x8 map."""
    return max(2, int(dataset.images.shape[2]) // 16)
