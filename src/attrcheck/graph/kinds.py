"""What methods need to know of a prepared graph: its kinds of module and its last stage."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, fx, nn


class Add(nn.Module):
    """a + b, made visible."""

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The sum."""
        return a + b


class Multiply(nn.Module):
    """a * b, made visible; `gate` is the operand (0 or 1) that only scales the other, if known."""

    def __init__(self, gate: int | None = None) -> None:
        super().__init__()
        self.gate = gate

    def forward(self, a: Tensor, b: Tensor) -> Tensor:
        """The product."""
        return a * b


class Concat(nn.Module):
    """Concatenation, made visible."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, *parts: Tensor) -> Tensor:
        """The parts, one after the other."""
        return torch.cat(parts, self.dim)


class Mean(nn.Module):
    """The mean over spatial dimensions, which is a pooling."""

    def __init__(self, dims: tuple[int, ...], keepdim: bool) -> None:
        super().__init__()
        self.dims = dims
        self.keepdim = keepdim

    def forward(self, x: Tensor) -> Tensor:
        """The mean."""
        return x.mean(self.dims, self.keepdim)


Kinds = tuple[type[nn.Module], ...]

RECTIFIERS: Kinds = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.PReLU, nn.RReLU, nn.ELU, nn.CELU, nn.SELU),
    *(nn.GELU, nn.SiLU, nn.Mish, nn.Hardswish, nn.Softplus),
)
"""Activations that let positive values through and hold back negative ones."""
GATES: Kinds = (nn.Sigmoid, nn.Hardsigmoid)
"""Activations between zero and one, never zero at zero: they scale, they carry no signal."""
ACTIVATIONS: Kinds = (*RECTIFIERS, *GATES, nn.Tanh, nn.Hardtanh, nn.Softsign)
NORMS: Kinds = (nn.BatchNorm1d, nn.BatchNorm2d)
AVERAGES: Kinds = (nn.AvgPool2d, nn.AdaptiveAvgPool2d, Mean)
MAXIMA: Kinds = (nn.MaxPool2d, nn.AdaptiveMaxPool2d)
SHAPES: Kinds = (Concat, nn.Flatten, nn.Unflatten, nn.ZeroPad2d, nn.PixelShuffle)
LINEAR: Kinds = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear, Add, *NORMS, *AVERAGES, *SHAPES)
"""Kinds that are affine in eval mode."""

QUERIES = ("size", "dim", "numel", "getattr")
TURNS = ("T", "mT", "H", "mH")
SHAPE_CALLS = (
    *("flatten", "view", "reshape", "permute", "transpose", "squeeze", "unsqueeze", "expand"),
    *("expand_as", "view_as", "contiguous", "getitem", "chunk", "split", "pad", "cat", "to"),
    *("unflatten", "unbind"),
)
"""Functions and tensor methods that only move numbers about."""
SCALINGS = ("add", "sub", "mul", "multiply", "truediv", "div", "divide")
PRODUCTS = ("matmul", "bmm")


def call_name(node: fx.Node) -> str:
    """The function or tensor method that a node calls, without a trailing `_`; else nothing."""
    if node.op not in ("call_function", "call_method"):
        return ""
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "?")
    return name.rstrip("_")


def module_of(model: fx.GraphModule, node: fx.Node) -> nn.Module | None:
    """The module that a node calls, if it calls one."""
    return model.get_submodule(str(node.target)) if node.op == "call_module" else None


def signals(graph: fx.Graph) -> set[fx.Node]:
    """The nodes that are tensors and depend on the image; the rest are sizes and constants."""
    found: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder" or (
            found.intersection(node.all_input_nodes) and not _asks(node)
        ):
            found.add(node)
    return found


def _asks(node: fx.Node) -> bool:
    """Whether a node asks for the size or type of a tensor; `x.mT` is a tensor itself."""
    turns = call_name(node) == "getattr" and node.args[1] in TURNS
    return call_name(node) in QUERIES and not turns


def attentions(model: fx.GraphModule) -> list[fx.Node]:
    """The softmaxes that weigh tokens: those that multiply a matrix from the left."""

    def weighs(node: fx.Node) -> bool:
        return any(call_name(user) in PRODUCTS and user.args[0] is node for user in node.users)

    return [
        node
        for node in model.graph.nodes
        if (call_name(node) == "softmax" or type(module_of(model, node)) is nn.Softmax)
        and weighs(node)
    ]


def evidence(model: fx.GraphModule) -> fx.Node | None:
    """The convolution whose maps, one a class, are averaged over space into the logits, if any."""
    (output,) = model.graph.find_nodes(op="output")
    node = output.args[0]
    while isinstance(module_of(model, node), nn.Flatten) or call_name(node) in SHAPE_CALLS:
        node = node.all_input_nodes[0]
    pool = module_of(model, node)
    whole = getattr(pool, "output_size", None) in (1, (1, 1)) or len(getattr(pool, "dims", ())) == 2
    if type(pool) not in AVERAGES or not whole:
        return None
    (before,) = node.all_input_nodes
    return before if isinstance(module_of(model, before), nn.Conv2d) else None


def obstacle(model: nn.Module, kinds: Collection[type], calls: Collection[str]) -> str | None:
    """Why rules for these kinds of module and these calls do not cover a model, or None."""
    if not isinstance(model, fx.GraphModule):
        return "the model is not a prepared graph: it could not be traced, see the warning"
    tensors = signals(model.graph)
    for node in model.graph.nodes:
        module = module_of(model, node)
        if module is not None:
            if type(module) not in kinds:
                return f"there is no rule for {type(module).__name__} (at {node.target})"
            if isinstance(module, NORMS) and not getattr(module, "track_running_stats", True):
                return f"{node.target} normalises by the batch, so that images are not independent"
        elif node in tensors and call_name(node) not in ("", *calls) and not _scales(node, tensors):
            return f"there is no rule for {call_name(node)}() (at {node.name})"
    return None


def _scales(node: fx.Node, tensors: set[fx.Node]) -> bool:
    """Whether a node adds a constant to the one tensor that it sees, or multiplies by one."""
    operands = tensors.intersection(node.all_input_nodes)
    divides = "div" in call_name(node)
    return (
        call_name(node) in SCALINGS
        and sum(argument in operands for argument in node.args) == 1
        and (not divides or node.args[0] in operands)
    )


class _Shapes(fx.Interpreter):
    """Runs a graph and notes the shape of every tensor."""

    def __init__(self, model: fx.GraphModule) -> None:
        super().__init__(model)
        self.shapes: dict[str, torch.Size] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if isinstance(value, Tensor):
            self.shapes[n.name] = value.shape
        return value


_STAGES: WeakKeyDictionary[nn.Module, dict[torch.Size, str | None]] = WeakKeyDictionary()


def last_stage(model: fx.GraphModule, images: Tensor) -> str | None:
    """The node with the last map of more than one pixel behind a convolution that is no pooling.

    That is where Grad-CAM looks; None where there is none. A convolution that classifies is no
    stage if there is another. Found once per model and image size.
    """
    known = _STAGES.setdefault(model, {})
    size = images.shape[1:]
    if size not in known:
        interpreter = _Shapes(model)
        with torch.no_grad():
            interpreter.run(torch.zeros_like(images[:1]))
        known[size] = _find_stage(model, interpreter.shapes)
    return known[size]


def _find_stage(model: fx.GraphModule, shapes: dict[str, torch.Size]) -> str | None:
    found = []
    convolved = False
    for node in model.graph.nodes:
        kind = type(module_of(model, node))
        convolved = convolved or issubclass(kind, nn.Conv2d) or call_name(node) == "conv2d"
        pools = kind in (*AVERAGES, *MAXIMA) or "pool" in call_name(node)
        shape = shapes.get(node.name, ())
        if convolved and not pools and node.op != "output" and len(shape) == 4:
            found += [node] if shape[2] * shape[3] > 1 else []
    classifier = evidence(model)
    stages = [node for node in found if node is not classifier] or found
    return stages[-1].name if stages else None
