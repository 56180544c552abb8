"""Plain edges: differences of neighbours."""

from __future__ import annotations

from torch import Tensor, nn

from attrcheck.contracts import Dataset
from attrcheck.methods import method
from attrcheck.methods._dummies import NO_EDGE, brightness, edges


@method("edge_gradient", family="dummy", passes=(0, 0), dummy=True, default=False, constant=NO_EDGE)
def edge_gradient(model: nn.Module, images: Tensor, targets: Tensor, *, dataset: Dataset) -> Tensor:
    """|dx| + |dy|, half the difference of the two neighbours along each axis."""
    return edges(brightness(images, dataset), (0.0, 0.5, 0.0)).to(images)
