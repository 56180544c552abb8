"""Reading a graph node by node: what each calls, and which of them carry the image's signal."""

from __future__ import annotations

from collections.abc import Collection

from torch import fx, nn

from attrcheck.graph.kinds import NORMS, SCALINGS, Concat, Crop

QUERIES = ("size", "dim", "numel", "getattr")
TURNS = ("T", "mT", "H", "mH")
NDIM = "ndim"
"""Where a node says how many axes its tensor has, if that is known."""
NOT_TRACED = "not_traced"
"""The attribute in which a network that could not be traced says why."""
PART = "the model looks at a part of the image only, and no grid of its cells covers all of it"
ACROSS = (2, 3)
"""The axes along which maps lie side by side."""


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
    carrying: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder" or (
            carrying.intersection(node.all_input_nodes) and not _asks(node)
        ):
            carrying.add(node)
    return carrying


def _asks(node: fx.Node) -> bool:
    """Whether a node asks for the size or type of a tensor; `x.mT` is a tensor itself."""
    turns = call_name(node) == "getattr" and node.args[1] in TURNS
    return call_name(node) in QUERIES and not turns


def no_graph(model: nn.Module) -> str | None:
    """Why a model is not a prepared graph; None if it is."""
    if isinstance(model, fx.GraphModule):
        return None
    why = getattr(model, NOT_TRACED, "")
    return f"the model is not a prepared graph{why and f', as it could not be traced: {why}'}"


def obstacle(model: nn.Module, kinds: Collection[type], calls: Collection[str]) -> str | None:
    """Why rules for these kinds of module and these calls do not cover a model, or None."""
    if not isinstance(model, fx.GraphModule):
        return no_graph(model)
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
