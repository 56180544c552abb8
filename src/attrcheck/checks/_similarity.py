"""How alike two maps of the same image are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from attrcheck.ranks import spearman


def rank_correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Mean over images of Spearman's correlation of the pixels, in [-1, 1].

    0 where a map is constant, which agrees with nothing.
    """
    pixels = (len(one), -1)
    return float(np.nan_to_num(spearman(one.reshape(pixels), other.reshape(pixels))).mean())
