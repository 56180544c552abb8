"""Where a network keeps a grid of cells: in maps, in tokens, or in both one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, fx, nn

from attrcheck.graph.kinds import AVERAGES, MAXIMA
from attrcheck.graph.nodes import call_name, module_of
from attrcheck.tensors.memo import PerModel

Size = tuple[int, int]
NORMALISERS = (nn.LayerNorm, nn.RMSNorm)
MOST_HALVINGS = 5
"""How often patches may be merged, two by two, behind the convolution that cuts them."""

MOST_LOOKS = 32
"""How many tensors are asked for their order, since an answer takes two passes."""
TOLERANCE = 1e-3
"""Relative, of what comes back to a cell; weights of tokens differ by more."""
EVEN = 0.1
"""Deviation of weights that hardly differ; those of tokens have three times as much."""


@dataclass(frozen=True)
class Layout:
    """How a tensor holds a grid: maps [N, C, h, w], rows [N, h, w, C] or tokens [N, T, C].

    Tokens are the cells row by row, behind some that are none: the prefix.
    """

    kind: Literal["maps", "rows", "tokens"]
    grid: Size
    prefix: int = 0

    def maps(self, values: Tensor) -> Tensor:
        """The cells of a tensor as maps [N, C, h, w]."""
        if self.kind == "maps":
            return values
        if self.kind == "rows":
            return values.permute(0, 3, 1, 2)
        cells = values[:, self.prefix :].transpose(1, 2)
        return cells.reshape(*cells.shape[:2], *self.grid)

    def put(self, maps: Tensor, values: Tensor) -> Tensor:
        """The tensor with these maps in its cells."""
        if self.kind == "maps":
            return maps
        if self.kind == "rows":
            return maps.permute(0, 2, 3, 1)
        return torch.cat([values[:, : self.prefix], maps.flatten(2).transpose(1, 2)], 1)


@dataclass(frozen=True)
class Place:
    """A node with a grid. heard: whether its cells have a say in the logits."""

    name: str
    layout: Layout
    heard: bool = True


_PLACES: PerModel[tuple[Place, ...]] = PerModel()


def places(model: fx.GraphModule, images: Tensor) -> tuple[Place, ...]:
    """All nodes with a grid of more than one cell, in order; found once per model and image size.

    In a network with layer norms these may be tokens: as wide as one of the norms, as many as the
    cells of the last convolution, or as are left if patches are merged, and perhaps a prefix. In
    others every tensor of four axes is one of maps.
    """
    return _PLACES.get(model, images.shape[1:], lambda: tuple(_find(model, images)))


def widths(model: fx.GraphModule) -> set[int]:
    """How many channels the layer norms of a network see."""
    shapes: list[Any] = []
    for node in model.graph.nodes:
        module = module_of(model, node)
        if isinstance(module, NORMALISERS):
            shapes.append(module.normalized_shape)
        elif call_name(node) in ("layer_norm", "rms_norm"):
            shapes.append(node.kwargs.get("normalized_shape", [*node.args, None][1]))
    return {shape[0] for shape in shapes if isinstance(shape, (list, tuple)) and len(shape) == 1}


class _Values(fx.Interpreter):
    """Runs a graph and keeps every tensor."""

    def __init__(self, model: fx.GraphModule) -> None:
        super().__init__(model)
        self.values: dict[fx.Node, Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if isinstance(value, Tensor) and n.op not in ("placeholder", "output"):
            self.values[n] = value
        return value


def _find(model: fx.GraphModule, images: Tensor) -> Iterator[Place]:
    run, known = _Values(model), widths(model)
    if not known:
        with torch.no_grad():
            run.run(torch.zeros_like(images[:1]))
        for node, value in run.values.items():
            if value.ndim == 4 and value[0, 0].numel() > 1:
                yield Place(node.name, Layout("maps", _size(value)))
        return
    generator = torch.Generator().manual_seed(0)
    probe = torch.randn(2, *images.shape[1:], generator=generator).to(images)
    with torch.enable_grad():
        logits = run.run(probe.requires_grad_())
    layouts = dict(_layouts(model, run.values, known))
    weights = torch.randn(logits.shape, generator=generator).to(logits)
    tensors = [run.values[node] for node in layouts]
    slopes = torch.autograd.grad(logits, tensors, weights, allow_unused=True)
    for (node, layout), slope in zip(layouts.items(), slopes, strict=True):
        yield Place(node.name, layout, slope is not None and bool(layout.maps(slope).any()))


def _layouts(
    model: fx.GraphModule, values: dict[fx.Node, Tensor], known: set[int]
) -> Iterator[tuple[fx.Node, Layout]]:
    """The layouts of a network with tokens."""
    order = _Order(torch.empty(0))
    sizes: list[Size] = []
    for node, value in values.items():
        if not value.requires_grad or len(value) != 2:
            continue
        if isinstance(module_of(model, node), nn.Conv2d) or call_name(node) == "conv2d":
            order, sizes = _Order(value), list(_halved(_size(value)))
        layout = _layout(value.shape, sizes, known)
        if layout and (layout.kind != "tokens" or order.holds(value, layout)):
            yield node, layout


def _layout(shape: torch.Size, sizes: list[Size], known: set[int]) -> Layout | None:
    if len(shape) == 4:
        kind: Literal["maps", "rows"]
        kind, size = ("maps", (shape[2], shape[3]))
        if shape[3] in known and (shape[1], shape[2]) in sizes:
            kind, size = ("rows", (shape[1], shape[2]))
        return Layout(kind, size) if size in sizes else None
    if len(shape) != 3 or shape[2] not in known or not sizes:
        return None
    prefix = shape[1] - sizes[0][0] * sizes[0][1]
    if prefix >= 0:
        return Layout("tokens", sizes[0], prefix)
    merged = [size for size in sizes if size[0] * size[1] == shape[1]]
    return Layout("tokens", merged[0]) if merged else None


def _halved(size: Size) -> Iterator[Size]:
    """The size, and what is left of it when cells are merged, as long as it has several."""
    for _ in range(MOST_HALVINGS):
        if size[0] * size[1] > 1:
            yield size
        size = -(-size[0] // 2), -(-size[1] // 2)


class _Order:
    """Whether tokens are the cells of a convolution, row by row."""

    def __init__(self, cut: Tensor) -> None:
        self.cut = cut
        self._known: dict[int, bool] = {}
        self._left = MOST_LOOKS

    def holds(self, tokens: Tensor, layout: Layout) -> bool:
        """The last that is known of tokens with this prefix, before they were mixed."""
        if self._left and layout.grid == _size(self.cut):
            self._left -= 1
            in_order = self._look(tokens, layout)
            if in_order is not None:
                self._known[layout.prefix] = in_order
            elif layout.prefix in self._known:
                self._left = 0
        return self._known.get(layout.prefix, False)

    def _look(self, tokens: Tensor, layout: Layout) -> bool | None:
        """Whether these are in order; None if they are mixed, or no tokens.

        To the cell of a token comes back what does so from all tokens, times this one's weight.
        """
        generator = torch.Generator().manual_seed(1)
        channels = torch.randn(tokens.shape[2], generator=generator).to(tokens).expand_as(tokens)
        weights = 1 + torch.rand(tokens.shape[1], 1, generator=generator).to(tokens)
        alone, weighted = (
            torch.autograd.grad(tokens, self.cut, upstream, retain_graph=True)[0]
            for upstream in (channels, channels * weights)
        )
        ratio = (weighted * alone).sum(1, keepdim=True) / alone.square().sum(1, keepdim=True)
        if not (weighted - ratio * alone).abs().max() < TOLERANCE * weighted.abs().max():
            return None
        if (ratio - layout.maps(weights.expand(1, -1, 1))).abs().max() < TOLERANCE:
            return True
        # Each token in the place of another; what all tokens share comes back alike to all cells.
        nearest = (ratio.flatten() - weights).abs().amin(0)
        return False if nearest.max() < TOLERANCE and ratio.std() > EVEN else None


def _size(maps: Tensor) -> Size:
    return maps.shape[2], maps.shape[3]


def pools(model: fx.GraphModule, node: fx.Node) -> bool:
    """Whether a node is a pooling."""
    kind = type(module_of(model, node))
    return kind in (*AVERAGES, *MAXIMA) or "pool" in call_name(node)
