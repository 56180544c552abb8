"""A network's output as all others want it: one tensor of logits, of the classes that count."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn

from attrcheck.errors import ModelError
from attrcheck.graph.tracing import Tracer

NAMES = ("logits", "output", "out")
"""What classifiers call their logits, in an object or a dict, best first."""
TOLERANCE = 1e-4
"""Of the largest logit: what sums in another order may make of it."""


class Around(nn.Module):
    """A network in another; what is asked for by name is the inner one's, as `model.layer4` is."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "network":  # before there is one, as in a copy that is being made
                raise
            return getattr(self.network, name)


class Logits(Around):
    """A network whose output holds logits, at an attribute, a key or an index, among others."""

    def __init__(self, network: nn.Module, at: str | int, by_key: bool = True) -> None:
        super().__init__(network)
        self.at = at
        self.by_key = by_key

    def forward(self, images: Tensor) -> Tensor:
        """The logits alone."""
        output = self.network(images)
        logits: Tensor = output[self.at] if self.by_key else getattr(output, str(self.at))
        return logits


class Chosen(Around):
    """A network of whose outputs only some count."""

    places: Tensor

    def __init__(self, network: nn.Module, places: Sequence[int]) -> None:
        super().__init__(network)
        self.register_buffer("places", torch.tensor(places), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Logits of the chosen classes, in their order."""
        logits: Tensor = self.network(images)
        return logits.index_select(1, self.places)


def unwrapped(
    network: nn.Module, images: Tensor, classes: int, tracer: Tracer | None = None
) -> nn.Module:
    """The network itself if it maps these images to a tensor, else one that takes the logits out.

    They are found by name in an object or dict, by shape in a tuple: one with as many columns as
    there are classes goes before others. A network whose graph ends in one node does not run.
    """
    network.eval()
    if isinstance(network, Around) or _ends_in_one(network, tracer or Tracer()):
        return network
    with torch.inference_mode():
        output = network(images)
    if isinstance(output, Tensor):
        return network
    fitting = [
        (part.shape[1] != classes, at, by_key)
        for at, by_key, part in _parts(output)
        if isinstance(part, Tensor) and part.ndim == 2 and len(part) == len(images)
    ]
    if not fitting:
        raise ModelError(
            f"{type(network).__name__} returns {_described(output)} without a tensor "
            f"[{len(images)}, {classes}] of logits; wrap it so that forward() returns the logits"
        )
    _, at, by_key = min(fitting, key=lambda candidate: candidate[0])
    return Logits(network, at, by_key).eval()


def chosen(network: nn.Module, places: Sequence[int], outputs: int, images: Tensor) -> nn.Module:
    """The network with these of its outputs only, in this order.

    Where its last layer makes one output per row, the other rows are cut off, so that the network
    can be taken apart as before; that this gives the same is tried on the images. Else outputs are
    selected at the end.
    """
    with torch.no_grad():
        logits = network(images)
    if list(logits.shape) != [len(images), outputs]:
        raise ModelError(
            f"{type(network).__name__} returns {list(logits.shape)} for {len(images)} images, but "
            f"there are {outputs} class names of the model"
        )
    for name, layer in reversed(list(network.named_modules())):
        if type(layer) in (nn.Linear, nn.Conv2d) and len(layer.weight) == outputs:
            parent, _, attribute = name.rpartition(".")
            owner = network.get_submodule(parent)
            setattr(owner, attribute, _cut(layer, places))
            if _gives(network, images, logits[:, list(places)]):
                return network
            setattr(owner, attribute, layer)
    return Chosen(network, places).eval()


def _ends_in_one(network: nn.Module, tracer: Tracer) -> bool:
    """Whether the graph of a network is known, and its output is one value."""
    try:
        graph = tracer.graph_of(network).graph
    except Exception:  # whatever the tracer stumbles over
        return False
    (output,) = graph.output_node().args
    # An object that is made of several values is a node too: a call of its class.
    return isinstance(output, fx.Node) and not isinstance(output.target, type)


def _cut(layer: nn.Module, places: Sequence[int]) -> nn.Module:
    """The layer with some of its outputs."""
    kept = copy.deepcopy(layer)
    setattr(kept, "out_features" if type(layer) is nn.Linear else "out_channels", len(places))
    for part in ("weight", "bias"):
        if (whole := getattr(layer, part)) is not None:
            setattr(kept, part, nn.Parameter(whole.detach()[list(places)], whole.requires_grad))
    return kept


def _gives(network: nn.Module, images: Tensor, wanted: Tensor) -> bool:
    try:
        with torch.no_grad():
            logits = network(images)
    except (RuntimeError, IndexError, ValueError):  # what follows wants all the outputs
        return False
    scale = float(wanted.abs().max())
    return logits.shape == wanted.shape and torch.allclose(logits, wanted, 0, TOLERANCE * scale)


def _parts(output: Any) -> Iterator[tuple[str | int, bool, Any]]:
    """Where logits may be, whether that is a key or index or else an attribute, and what is there.

    A string is a key of a mapping, an index one of a sequence.
    """
    if isinstance(output, Mapping):
        yield from ((name, True, output[name]) for name in NAMES if name in output)
    yield from ((name, False, getattr(output, name)) for name in NAMES if hasattr(output, name))
    if isinstance(output, tuple | list):
        yield from ((index, True, part) for index, part in enumerate(output))


def _described(output: Any) -> str:
    kind = type(output).__name__
    if isinstance(output, Mapping):
        return f"a {kind} of {', '.join(map(str, output)) or 'nothing'}"
    return f"a {kind} of {len(output)}" if isinstance(output, tuple | list) else f"a {kind}"
