"""Networks whose head sees one cell of a grid of images (Rao et al. 2022): DiFull and DiPart."""

from __future__ import annotations

import torch
from torch import Tensor, fx, nn

from attrcheck.contracts import Disconnection
from attrcheck.errors import NotApplicableError
from attrcheck.graph.halves import split, waists
from attrcheck.graph.kinds import Crop
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.nodes import no_graph


class Disconnected(nn.Module):
    """A network whose head sees one cell of a grid of images, and no other.

    backbone: makes maps of an image. head: makes logits of the maps of one. If the cells go through
    the backbone apart, their maps are put together again, for methods that look at the maps of the
    whole grid.
    """

    def __init__(
        self, backbone: nn.Module, head: nn.Module, grids: Tensor, how: Disconnection
    ) -> None:
        super().__init__()
        self.backbone, self.head, self.side, self.apart = backbone, head, how.side, how.apart
        cells = range(how.side**2 if how.apart else 0)
        self.cells = nn.ModuleList(_cropping(grids, how.side, cell) for cell in cells)
        with torch.no_grad():
            maps = self._maps(grids)
        self.crop = _cropping(maps, how.side, how.cell)

    def forward(self, x: Tensor) -> Tensor:
        """The logits of the cell."""
        logits: Tensor = self.head(self.crop(self._maps(x)))
        return logits

    def _maps(self, x: Tensor) -> Tensor:
        if not self.apart:
            maps: Tensor = self.backbone(x)
            return maps
        cells = [self.backbone(crop(x)) for crop in self.cells]
        rows = (cells[start : start + self.side] for start in range(0, len(cells), self.side))
        return torch.cat([torch.cat(row, 3) for row in rows], 2)


def disconnected(model: nn.Module, images: Tensor, how: Disconnection) -> nn.Module:
    """A prepared network whose head sees one cell of a grid of such images.

    It is cut at its last stage, which all that follows must depend on alone. Without such a stage,
    a network whose cells are to be apart sees nothing but the cell; if they are not, that is a
    NotApplicableError, as is a stage that does not grow with the image.
    """
    grids, cut = laid_out(images[:2], how.side), _cut(model, images)
    if cut is None and how.apart:
        return nn.Sequential(_cropping(grids, how.side, how.cell), model)
    if cut is None:
        raise NotApplicableError(
            no_graph(model)
            or "the model is not a convolutional network: no maps hold all that its head sees"
        )
    assert isinstance(model, fx.GraphModule)
    backbone, head = split(model, cut)
    if not how.apart:
        _try(backbone, images, grids, how.side)
    return Disconnected(backbone, head, grids, how)


def laid_out(images: Tensor, side: int) -> Tensor:
    """Grids of one image each, of the size that those of such images have."""
    return images.repeat(1, 1, side, side)


def _cut(model: nn.Module, images: Tensor) -> fx.Node | None:
    """The last stage of a prepared graph, if it has one of maps that holds all that follows."""
    if not isinstance(model, fx.GraphModule):
        return None
    stage = last_stage(model, images)
    if stage is None or stage.layout.kind != "maps":
        return None
    return next((node for node in waists(model) if node.name == stage.name), None)


def _try(backbone: nn.Module, images: Tensor, grids: Tensor, side: int) -> None:
    """An error unless the maps of grids can be cut into those of their cells."""
    try:
        with torch.no_grad():
            one, all_cells = (backbone(some[:1]).shape[2:] for some in (images, grids))
    except Exception as error:
        size = " x ".join(map(str, grids.shape[2:]))
        raise NotApplicableError(
            f"the model does not take images of {size}, such as a grid of {side} x {side} of its "
            "images"
        ) from error
    if all_cells != tuple(side * length for length in one):
        raise NotApplicableError(
            f"the last maps of the model, {one[0]} x {one[1]}, become {all_cells[0]} x "
            f"{all_cells[1]} on a grid of {side} x {side} images: they cannot be cut into its cells"
        )


def _cropping(maps: Tensor, side: int, cell: int) -> Crop:
    """Cuts one of side x side cells out of maps of this size."""
    height, width = (length // side for length in maps.shape[2:])
    return Crop(height * (cell // side), width * (cell % side), height, width)
