"""What tests of prepared graphs share: their modules, and what all of them promise."""

import torch
from torch import fx


def modules(prepared):
    """The modules that the graph calls, in order."""
    calls = (node for node in prepared.graph.nodes if node.op == "call_module")
    return [prepared.get_submodule(node.target) for node in calls]


def kinds(prepared):
    return [type(part) for part in modules(prepared)]


def assert_same_output(network, prepared, images):
    with torch.no_grad():
        # A copy, since a network may change its input in place.
        wanted, found = network(images.clone()), prepared(images)
    assert (found - wanted).abs().max() <= 1e-5 * wanted.abs().max()


def assert_ready(prepared):
    assert isinstance(prepared, fx.GraphModule)
    assert not any(part.training for part in prepared.modules())
    assert not any(part.requires_grad for part in prepared.parameters())
    assert not any(getattr(part, "inplace", False) for part in prepared.modules())
    called = modules(prepared)
    assert len({id(part) for part in called}) == len(called)
