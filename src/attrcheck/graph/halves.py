"""Where a graph is narrow: a model in two halves, before and after its middle tensor."""

from __future__ import annotations

from collections.abc import Iterator

from torch import fx, nn

from attrcheck.graph.nodes import module_of, no_graph, partial

NO_MIDDLE = "no tensor between two convolutions holds all that the rest of the model sees"


def needs_middle(model: nn.Module) -> str | None:
    """Why a model cannot be cut in the middle, or None."""
    if not isinstance(model, fx.GraphModule):
        return no_graph(model)
    return NO_MIDDLE if middle(model) is None else None


def middle(model: fx.GraphModule) -> fx.Node | None:
    """The last node, of those that hold all that follows, with about half of the convolutions
    before it; None if there is none between two convolutions."""
    total = sum(type(module_of(model, node)) is nn.Conv2d for node in model.graph.nodes)
    before, cuts = 0, dict[int, fx.Node]()
    narrow, parts = set(waists(model)), partial(model)
    for node in model.graph.nodes:
        before += type(module_of(model, node)) is nn.Conv2d
        if node in narrow - parts and 0 < before < total:
            cuts[before] = node
    nearest = min(cuts, key=lambda count: abs(2 * count - total), default=0)
    return cuts.get(nearest)


def waists(model: fx.GraphModule) -> Iterator[fx.Node]:
    """The nodes that hold all that follows: nothing from before them is read after them."""
    order = {node: place for place, node in enumerate(model.graph.nodes)}
    dependent, reach = _dependent(model.graph), 0
    for node, place in order.items():
        if node in dependent:
            if reach <= place:
                yield node
            reach = max([reach, *(order[user] for user in node.users)])


def halves(model: nn.Module) -> tuple[fx.GraphModule, fx.GraphModule]:
    """What is before the middle and what is after it, made of the model's own modules."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(no_graph(model))
    cut = middle(model)
    if cut is None:
        raise ValueError(NO_MIDDLE)
    return split(model, cut)


def split(model: fx.GraphModule, cut: fx.Node) -> tuple[fx.GraphModule, fx.GraphModule]:
    """What is before a waist, with it, and what is after it, made of the model's own modules."""
    nodes = list(model.graph.nodes)
    place = nodes.index(cut)
    tail = fx.Graph()
    copies = {cut: tail.placeholder("features")}
    dependent = _dependent(model.graph)
    for node in nodes:
        # Constants from before the cut are needed behind it too.
        if node not in nodes[: place + 1] or node not in dependent:
            copies[node] = tail.node_copy(node, copies.__getitem__)
    return until(model, cut), fx.GraphModule(model, tail)


def until(model: fx.GraphModule, cut: fx.Node) -> fx.GraphModule:
    """The model that ends with a node, made of the model's own modules."""
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in model.graph.nodes:
        copies[node] = graph.node_copy(node, copies.__getitem__)
        if node is cut:
            break
    graph.output(copies[cut])
    return fx.GraphModule(model, graph)


def _dependent(graph: fx.Graph) -> set[fx.Node]:
    """The nodes that depend on the image, be it on its size alone."""
    nodes: set[fx.Node] = set()
    for node in graph.nodes:
        if node.op == "placeholder" or nodes.intersection(node.all_input_nodes):
            nodes.add(node)
    return nodes
