"""Where a graph is narrow: a model in two halves, before and after its middle tensor."""

from __future__ import annotations

from torch import fx, nn

from attrcheck.graph.nodes import module_of, no_graph

NO_MIDDLE = "no tensor between two convolutions holds all that the rest of the model sees"


def needs_middle(model: nn.Module) -> str | None:
    """Why a model cannot be cut in the middle, or None."""
    if not isinstance(model, fx.GraphModule):
        return no_graph(model)
    return NO_MIDDLE if middle(model) is None else None


def middle(model: fx.GraphModule) -> fx.Node | None:
    """The last node, of those that hold all that follows, with about half of the convolutions
    before it; None if there is none between two convolutions."""
    order = {node: place for place, node in enumerate(model.graph.nodes)}
    dependent = _dependent(model.graph)
    total = sum(type(module_of(model, node)) is nn.Conv2d for node in order)
    before, reach = 0, 0
    cuts: dict[int, fx.Node] = {}
    for node, place in order.items():
        before += type(module_of(model, node)) is nn.Conv2d
        if node in dependent:
            # Nothing from before this node is read after it.
            if reach <= place and 0 < before < total:
                cuts[before] = node
            reach = max([reach, *(order[user] for user in node.users)])
    nearest = min(cuts, key=lambda count: abs(2 * count - total), default=0)
    return cuts.get(nearest)


def halves(model: nn.Module) -> tuple[fx.GraphModule, fx.GraphModule]:
    """What is before the middle and what is after it, made of the model's own modules."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(no_graph(model))
    cut = middle(model)
    if cut is None:
        raise ValueError(NO_MIDDLE)
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
