"""Places of a prepared graph that methods look for: its attentions, evidence and last stage."""

from __future__ import annotations

from math import inf

from torch import Tensor, fx, nn

from attrcheck.graph.grids import Place, places, pools
from attrcheck.graph.kinds import SHAPE_CALLS, Mean, Product
from attrcheck.graph.nodes import call_name, module_of, partial
from attrcheck.tensors.memo import PerModel

_LAST: PerModel[Place | None] = PerModel()


def attentions(model: fx.GraphModule) -> list[fx.Node]:
    """The softmaxes that weigh tokens: those that multiply a matrix from the left."""

    def weighs(node: fx.Node) -> bool:
        users = [user for user in node.users if user.args[0] is node]
        return any(
            type(module_of(model, user)) is Product or (call_name(user) == "to" and weighs(user))
            for user in users
        )

    return [
        node
        for node in model.graph.nodes
        if type(module_of(model, node)) is nn.Softmax and weighs(node)
    ]


def evidence(model: fx.GraphModule) -> fx.Node | None:
    """The convolution whose maps, one per class, are averaged into the logits, if any."""
    (output,) = model.graph.find_nodes(op="output")
    node = output.args[0]
    while isinstance(module_of(model, node), nn.Flatten) or call_name(node) in SHAPE_CALLS:
        node = node.all_input_nodes[0]
    pool = module_of(model, node)
    if not _averages_all(pool):
        return None
    (before,) = node.all_input_nodes
    convolves = isinstance(module_of(model, before), nn.Conv2d)
    return before if convolves and before not in partial(model) else None


def _averages_all(pool: nn.Module | None) -> bool:
    """Whether a module is the mean over all places of a map."""
    if type(pool) is Mean:
        return {axis % 4 for axis in pool.dims} == {2, 3}
    return type(pool) is nn.AdaptiveAvgPool2d and pool.output_size in (1, (1, 1))


def last_stage(model: fx.GraphModule, images: Tensor) -> Place | None:
    """The last grid behind a convolution whose cells have a say; None where there is none.

    That is where Grad-CAM looks; it is looked for once per model and image size. Poolings and
    linear layers on tokens aside: a class token listens to the others for the last time when these
    enter the last attention, and its query, key and value are part of that. A convolution that
    classifies is not a stage if there is another, and nothing is that sees a part of the image
    only.
    """
    return _LAST.get(model, images.shape[1:], lambda: _last(model, images))


def _last(model: fx.GraphModule, images: Tensor) -> Place | None:
    nodes = {node.name: node for node in model.graph.nodes}
    order = {name: place for place, name in enumerate(nodes)}
    first = min((order[name] for name in nodes if _convolves(model, nodes[name])), default=inf)
    parts = partial(model)
    behind = [
        place
        for place in places(model, images)
        if order[place.name] >= first
        and not pools(model, nodes[place.name])
        and nodes[place.name] not in parts
    ]
    stages = [place for place in behind if not _projects(model, nodes[place.name], place)]
    stages = [place for place in stages if place.heard] or stages
    classifier = evidence(model)
    stages = [place for place in stages if nodes[place.name] is not classifier] or stages
    return stages[-1] if stages else None


def _convolves(model: fx.GraphModule, node: fx.Node) -> bool:
    return isinstance(module_of(model, node), nn.Conv2d) or call_name(node) == "conv2d"


def _projects(model: fx.GraphModule, node: fx.Node, place: Place) -> bool:
    """Whether it is a linear layer on tokens."""
    linear = isinstance(module_of(model, node), nn.Linear) or call_name(node) == "linear"
    return linear and place.layout.kind != "maps"
