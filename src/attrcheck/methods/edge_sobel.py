"""Sobel edges (Sobel and Feldman 1968)."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import NO_EDGE, SOBEL, brightness, edges


@method(
    "edge_sobel",
    family="dummy",
    passes=(0, 0),
    dummy=True,
    reference="Sobel and Feldman 1968",
    constant=NO_EDGE,
)
def edge_sobel(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """|Gx| + |Gy| of Sobel's kernels."""
    return edges(brightness(images, dataset), SOBEL).to(images)
