"""Networks whose head sees one cell of a grid of images (Rao et al. 2022): DiFull and DiPart."""

from __future__ import annotations

import torch
from torch import Tensor, fx, nn

from attrcheck.errors import NotApplicableError
from attrcheck.graph.halves import split, waists
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.nodes import no_graph
from attrcheck.graph.parts import cropping


class Disconnected(nn.Module):
    """A network whose head sees one cell of a side x side grid of images, and no other.

    backbone: makes maps of an image. head: makes logits of the maps of one. apart: whether each
    cell goes through the backbone by itself, so that no pixel of the others can matter; their maps
    are then put together again, for methods that look at the maps of the whole grid.
    """

    def __init__(
        self, backbone: nn.Module, head: nn.Module, grids: Tensor, side: int, cell: int, apart: bool
    ) -> None:
        super().__init__()
        self.backbone, self.head, self.side, self.apart = backbone, head, side, apart
        self.cells = nn.ModuleList(cropping(grids, side, at) for at in range(side**2) if apart)
        with torch.no_grad():
            maps = self._maps(grids)
        self.crop = cropping(maps, side, cell)

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


def difull(model: nn.Module, images: Tensor, side: int, cell: int) -> nn.Module:
    """The network on one cell of a grid: no pixel of another cell can influence a logit.

    images: some of those that the prepared `model` takes. The other cells go through the network
    too, up to its last stage: methods may look there, but nothing comes of it. A network without
    a stage of maps that holds all that follows sees nothing but the cell.
    """
    grids = _grids(images, side)
    cut = _cut(model, images)
    if cut is None:
        return nn.Sequential(cropping(grids, side, cell), model)
    assert isinstance(model, fx.GraphModule)
    return Disconnected(*split(model, cut), grids, side, cell, apart=True)


def dipart(model: nn.Module, images: Tensor, side: int, cell: int) -> nn.Module:
    """The network on a grid, up to its last stage, then on the maps of one cell alone.

    NotApplicableError where there is no such stage, or where it does not grow with the image.
    """
    cut = _cut(model, images)
    if cut is None:
        raise NotApplicableError(
            no_graph(model)
            or "the model is not a convolutional network: no maps hold all that its head sees"
        )
    assert isinstance(model, fx.GraphModule)
    backbone, head = split(model, cut)
    grids = _grids(images, side)
    height, width = grids.shape[2:]
    try:
        with torch.no_grad():
            one, all_cells = backbone(images[:1]).shape, backbone(grids).shape
    except Exception as error:
        raise NotApplicableError(
            f"the model does not take images of {height} x {width}, such as a grid of {side} x "
            f"{side} of its images"
        ) from error
    if all_cells[2:] != tuple(side * length for length in one[2:]):
        raise NotApplicableError(
            f"the last maps of the model, {one[2]} x {one[3]}, become {all_cells[2]} x "
            f"{all_cells[3]} on a grid of {side} x {side} images: they cannot be cut into its cells"
        )
    return Disconnected(backbone, head, grids, side, cell, apart=False)


def _cut(model: nn.Module, images: Tensor) -> fx.Node | None:
    """The last stage of a prepared graph, if it has one of maps that holds all that follows."""
    if not isinstance(model, fx.GraphModule):
        return None
    stage = last_stage(model, images)
    if stage is None or stage.layout.kind != "maps":
        return None
    return next((node for node in waists(model) if node.name == stage.name), None)


def _grids(images: Tensor, side: int) -> Tensor:
    """Two grids without any sense, of the size that those of such images have."""
    return images[:2].repeat(1, 1, side, side)
