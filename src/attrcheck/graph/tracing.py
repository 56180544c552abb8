"""From a network to its graph: what is one node of it, and what is taken apart."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.proxy import Attribute

from attrcheck.graph.bcos import BcosConv2d, Encode
from attrcheck.graph.kinds import Add, Concat, Crop, Mean, Multiply, Product, Sum, Unit
from attrcheck.graph.nodes import NDIM
from attrcheck.graph.sketches import Sketches, UnknownError

LEAVES = (Add, Multiply, Product, Concat, Crop, Mean, Sum, Unit, BcosConv2d, Encode)
"""Modules that are one node of a graph, as layers of torch are: those of an already prepared graph,
and what rules for B-cos networks act on."""

TOLERANCE = 1e-2
"""How far logits of a graph may be from those of its network, relative to the largest. What is
folded is rounded in another way, which an Inception v4 of random weights makes 1e-3 of."""

Leaf = type[nn.Module] | str
"""A class of modules, or the name of one in its network."""


class OtherLogitsError(Exception):
    """A graph does not compute what its network does."""


def compare(network: nn.Module, model: nn.Module, images: Tensor) -> None:
    """Raise unless a graph computes what its network does."""
    with torch.no_grad():
        # Copies, since both may change their input in place.
        wanted, logits = network(images.clone()), model(images.clone())
    if not isinstance(wanted, Tensor):
        return  # whoever asks for logits will say so
    apart = (logits - wanted).abs().max()
    if logits.shape != wanted.shape or not apart <= TOLERANCE * wanted.abs().max():
        raise OtherLogitsError(f"its graph computes other logits, by {apart:.2g}")


class Tracer(fx.Tracer):
    """Takes LEAVES as they are, beside the layers of torch, and the image as the only input.

    images: like those that the graph is for; without them a network may not branch on their size.
    leaf: other modules that are one node. concrete_args: arguments of forward() beside the image;
    all others keep their defaults.
    """

    def __init__(
        self,
        images: Tensor | None = None,
        leaf: Collection[Leaf] = (),
        concrete_args: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.images = images
        self.leaves = (*LEAVES, *(part for part in leaf if not isinstance(part, str)))
        self.leaf_names = {part for part in leaf if isinstance(part, str)}
        self.settings = dict(concrete_args or {})
        self.sketches: Sketches | None = None
        self.stuck_in = ""
        """The part of the network that could not be traced."""

    def graph_of(self, network: nn.Module) -> fx.GraphModule:
        """The graph of a network, made of its own modules; raises whatever it stumbles over."""
        self.sketches = None if self.images is None else Sketches(network, self.images)
        return fx.GraphModule(network, self.trace(network))

    def proxy(self, node: fx.Node) -> fx.Proxy:
        """A proxy that keeps changes in place apart."""
        return _Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Any, args: Any, kwargs: Any, *more: Any, **options: Any
    ) -> fx.Proxy:
        """A node for a call, with its sketch."""
        proxy = super().create_proxy(kind, target, args, kwargs, *more, **options)
        if self.sketches and kind != "placeholder":
            self.sketches.note(proxy.node, args, kwargs)
            with suppress(UnknownError):
                proxy.node.meta[NDIM] = len(self.sketches.sizes(proxy.node))
        return proxy

    def create_args_for_root(self, root_fn: Any, is_module: bool, concrete_args: Any = None) -> Any:
        """Only the image is an input; what else forward() takes is set, or keeps its default."""
        declared = inspect.signature(inspect.unwrap(root_fn)).parameters
        function, (root, image, *others) = super().create_args_for_root(root_fn, is_module)
        if self.sketches:
            self.sketches.start(image.node)
            image.node.meta[NDIM] = len(self.sketches.sizes(image.node))
        return function, [root, image, *(self._setting(other, declared) for other in others)]

    def _setting(self, argument: fx.Proxy, declared: Mapping[str, inspect.Parameter]) -> Any:
        """The value of an argument beside the image; a proxy where none is known."""
        name = str(argument.node.target)
        default = declared[name.lstrip("*")].default
        value = self.settings.get(name, {"*": (), "**": {}}.get(name[: name.count("*")], default))
        if value is inspect.Parameter.empty:
            return argument
        self.graph.erase_node(argument.node)
        return value

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Whether a module is one node of the graph."""
        chosen = isinstance(m, self.leaves) or module_qualified_name in self.leaf_names
        return chosen or super().is_leaf_module(m, module_qualified_name)

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        """Trace a module, or run it if it is a sketch; note the innermost that cannot be traced."""
        paths: Any = self.submodule_paths
        if m not in paths:
            return forward(*args, **kwargs)
        try:
            return super().call_module(m, forward, args, kwargs)
        except Exception:
            self.stuck_in = self.stuck_in or paths[m]
            raise

    def to_bool(self, obj: fx.Proxy) -> bool:
        """What a network branches on, if all images agree on it."""
        try:
            return bool(self._constant(obj))
        except UnknownError:
            return super().to_bool(obj)

    def iter(self, obj: fx.Proxy) -> Iterator[Any]:
        """The parts of a sequence or tensor, if it is known how many there are."""
        try:
            count = self._constant(obj, len)
        except UnknownError:
            return super().iter(obj)
        return (operator.getitem(obj, place) for place in range(count))

    def _constant(self, proxy: fx.Proxy, *read: Any) -> Any:
        if self.sketches is None:
            raise UnknownError
        return self.sketches.constant(proxy.node, *read)


class _Proxy(fx.Proxy):
    """Knows sizes that do not depend on the batch.

    Keeps `a += b` apart from `a = a + b`, since the first also changes other names of a.
    """

    tracer: Tracer

    @property
    def shape(self) -> Any:
        """A number, or where it depends on the batch a proxy, for each axis."""
        sizes = self._sizes()
        if sizes is None:
            return Attribute(self, "shape")
        shape: Any = tuple(
            self._call("size", axis) if size is None else size for axis, size in enumerate(sizes)
        )
        return shape if None in sizes else torch.Size(shape)

    def size(self, dim: int | None = None) -> Any:
        """As of a tensor."""
        sizes = self._sizes()
        if sizes is None:
            return self._call("size", *(() if dim is None else (dim,)))
        if dim is None:
            return self.shape
        return self._call("size", dim) if sizes[dim] is None else sizes[dim]

    def dim(self) -> Any:
        """As of a tensor."""
        sizes = self._sizes()
        return self._call("dim") if sizes is None else len(sizes)

    @property
    def ndim(self) -> Any:
        """As of a tensor."""
        sizes = self._sizes()
        return Attribute(self, "ndim") if sizes is None else len(sizes)

    def __len__(self) -> int:
        try:
            return int(self.tracer._constant(self, len))
        except UnknownError:
            return super().__len__()

    def _sizes(self) -> list[int | None] | None:
        """The sizes of a tensor, None where they depend on the batch; None if nothing is known."""
        try:
            return self.tracer.sketches.sizes(self.node) if self.tracer.sketches else None
        except UnknownError:
            return None

    def _call(self, name: str, *args: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_method", name, (self, *args), {})

    def __iadd__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.iadd, other)

    def __isub__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.isub, other)

    def __imul__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.imul, other)

    def __itruediv__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.itruediv, other)

    def __ipow__(self, other: Any) -> fx.Proxy:
        return self._in_place(operator.ipow, other)

    def _in_place(self, change: Any, other: Any) -> fx.Proxy:
        return self.tracer.create_proxy("call_function", change, (self, other), {})
