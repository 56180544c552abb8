"""What a place of a feature map can see: receptive fields, worked out on a prepared graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import fx, nn

from attrcheck.graph.kinds import ACTIVATIONS, SCALINGS, Add, Concat, Multiply
from attrcheck.graph.nodes import call_name, module_of, signals

POINTWISE = (*ACTIVATIONS, nn.BatchNorm2d, Add, Multiply, Concat)
WINDOWS = (nn.Conv2d, nn.MaxPool2d, nn.AvgPool2d)


@dataclass(frozen=True)
class Field:
    """Place i of a map sees the pixels `step` * i + `low` to `step` * i + `high`, both included."""

    step: int = 1
    low: int = 0
    high: int = 0


def receptive_field(model: fx.GraphModule, last: fx.Node) -> Field | str:
    """What a place at this node sees, in rows as in columns; or why that cannot be said."""
    tensors = signals(model.graph)
    fields: dict[fx.Node, Field] = {}
    for node in model.graph.nodes:
        if node not in tensors:
            continue
        before = [fields[part] for part in node.all_input_nodes if part in tensors]
        module = module_of(model, node)
        if node.op == "placeholder":
            fields[node] = Field()
        elif type(module) in WINDOWS:
            if not isinstance(field := _through(module, before[0]), Field):
                return f"{field} (at {node.name})"
            fields[node] = field
        elif type(module) in POINTWISE or call_name(node) in SCALINGS or _crops(node):
            if len({field.step for field in before}) > 1:
                return f"maps of different scales meet (at {node.name})"
            low, high = min(f.low for f in before), max(f.high for f in before)
            fields[node] = Field(before[0].step, low, high)
        else:
            what = type(module).__name__ if module else f"{call_name(node)}()"
            return f"{what} may see the whole image (at {node.name})"
        if node is last:
            break
    return fields[last]


def _through(window: Any, field: Field) -> Field | str:
    """The field behind a convolution or pooling, which must treat rows and columns alike."""
    settings = (window.kernel_size, window.stride, window.padding, getattr(window, "dilation", 1))
    pairs = [value if isinstance(value, tuple) else (value, value) for value in settings]
    if any(a != b or not isinstance(a, int) for a, b in pairs):
        return "a window has other rows than columns"
    size, stride, padding, dilation = (a for a, _ in pairs)
    low = field.low - field.step * padding
    high = field.high + field.step * (dilation * (size - 1) - padding)
    return Field(field.step * stride, low, high)


def _crops(node: fx.Node) -> bool:
    """Whether a node cuts off ends of rows and columns, and so moves nothing."""
    parts = node.args[1] if call_name(node) == "getitem" else ()
    return (
        isinstance(parts, tuple)
        and bool(parts)
        and all(isinstance(part, slice) and not part.start and part.step is None for part in parts)
    )
