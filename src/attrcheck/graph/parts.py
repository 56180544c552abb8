"""Which nodes of a network see all of the image, and which only a part that was cut out."""

from __future__ import annotations

from torch import Tensor, fx

from attrcheck.graph.kinds import Concat, Crop
from attrcheck.graph.nodes import module_of

PART = "the model looks at a part of the image only, and no grid of its cells covers all of it"
ACROSS = (2, 3)
"""The axes along which maps lie side by side."""


def cropping(maps: Tensor, side: int, cell: int) -> Crop:
    """Cuts one of side x side cells, counted row by row, out of maps of this size."""
    height, width = (length // side for length in maps.shape[2:])
    return Crop(height * (cell // side), width * (cell % side), height, width)


def partial(model: fx.GraphModule) -> set[fx.Node]:
    """The nodes that see a part of the image only: what is cut out, until it is put together."""
    parts: set[fx.Node] = set()
    for node in model.graph.nodes:
        module = module_of(model, node)
        joins = isinstance(module, Concat) and module.dim in ACROSS
        if isinstance(module, Crop) or (not joins and parts.intersection(node.all_input_nodes)):
            parts.add(node)
    return parts


def sees_all(model: fx.GraphModule) -> bool:
    """Whether something in a network sees all of the image."""
    parts = partial(model)
    return any(node not in parts for node in model.graph.nodes if node.op == "call_module")
