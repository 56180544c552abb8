"""Replace removed pixels by the dataset's mean."""

from __future__ import annotations

from torch import Tensor

from attrcheck.removal import removal


@removal("mean", fixed=True)
def mean(images: Tensor, keep: Tensor) -> Tensor:
    """Zero in all channels, which is the dataset's mean once images are normalised."""
    return images * keep[:, None]
