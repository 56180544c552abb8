"""Explanations that networks bring along: B-cos weights and the evidence of BagNets."""

from __future__ import annotations

import torch
from torch import Tensor, fx, nn

from attrcheck.graph.bcos import BcosConv2d, Encode
from attrcheck.graph.halves import until
from attrcheck.graph.kinds import AVERAGES, SHAPE_CALLS, SHAPES, Add
from attrcheck.graph.landmarks import evidence
from attrcheck.graph.nodes import call_name, module_of, no_graph, obstacle, signals
from attrcheck.graph.receptive import Field, receptive_field
from attrcheck.methods import method
from attrcheck.methods._rules import BackwardRule, backpropagate, ruled, valued
from attrcheck.tensors.memo import PerModel
from attrcheck.tensors.transfers import sent


def needs_bcos(model: nn.Module) -> str | None:
    """Why a model is not B-cos, or linear without bias, from the encoded image on; or None."""
    if not any(isinstance(module, Encode) for module in model.modules()):
        return "the model is not a B-cos network with an encoded image"
    if reason := obstacle(model, (BcosConv2d, Encode, Add, *AVERAGES, *SHAPES), SHAPE_CALLS):
        return reason
    assert isinstance(model, fx.GraphModule)
    for node in signals(model.graph):
        if call_name(node) in ("add", "sub"):
            return f"a constant is added to the signal (at {node.name}), which no pixel explains"
    return None


def frozen(module: BcosConv2d, x: Tensor) -> Tensor:
    """The transform as the linear map that it is at x."""
    linear = module.linear(x)
    return linear * module.cosines(x, linear).detach()


def weighed(module: Encode, x: Tensor) -> Tensor:
    """The encoded image, whose derivative in its own direction goes to the first channel."""
    encoded = module(x.detach())
    return valued(encoded * x[:, :1], encoded)


FROZEN: dict[type[nn.Module], BackwardRule] = {BcosConv2d: frozen, Encode: weighed}


@method(
    "bcos_weights",
    axioms={"conservation": 1e-3},
    family="self-explaining",
    passes=(1, 1),
    reference="Boehle et al. 2022",
    not_applicable=needs_bcos,
)
def bcos_weights(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """W(x) * e(x), summed over the channels of the encoded image e(x); sums to the logit."""
    return backpropagate(ruled(model, FROZEN), images, targets).sum(1)


_BAGS: PerModel[tuple[fx.GraphModule, Field] | str] = PerModel()


def bag(model: nn.Module) -> tuple[fx.GraphModule, Field] | str:
    """The model up to its evidence [N, classes, h, w], whose spatial mean is the logits, and what
    each place sees; or why there is none. Made once per model, of the model's own modules."""
    if not isinstance(model, fx.GraphModule):
        return str(no_graph(model))
    return _BAGS.get(model, (), lambda: _bag(model))


def _bag(model: fx.GraphModule) -> tuple[fx.GraphModule, Field] | str:
    node = evidence(model)
    if node is None or type(module_of(model, node)) is not nn.Conv2d:
        return "the logits are not a mean over places of evidence for the classes"
    field = receptive_field(model, node)
    return field if isinstance(field, str) else (until(model, node), field)


def needs_evidence(model: nn.Module) -> str | None:
    """Why a model has no evidence by patch, or None."""
    known = bag(model)
    return known if isinstance(known, str) else None


def spread(values: Tensor, field: Field, size: torch.Size) -> Tensor:
    """Values [N, h, w], each divided evenly among the pixels that its place sees: [N, H, W]."""
    rows, columns = (
        sent(_seen(count, field, pixels), values)
        for count, pixels in zip(values.shape[1:], size, strict=True)
    )
    return rows.T @ values @ columns


def _seen(count: int, field: Field, pixels: int) -> Tensor:
    """One row per place: one over the number of pixels that it sees, at those pixels."""
    start = field.step * torch.arange(count)[:, None]
    pixel = torch.arange(pixels)
    inside = (start + field.low <= pixel) & (pixel <= start + field.high)
    return inside / inside.sum(1, keepdim=True)


@method(
    "bagnet_evidence",
    axioms={"conservation": 1e-3},
    family="self-explaining",
    passes=(1, 0),
    reference="Brendel and Bethge 2019",
    not_applicable=needs_evidence,
)
def bagnet_evidence(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """A patch's evidence for the class, divided by the number of patches and spread over its own
    pixels; sums to the logit."""
    known = bag(model)
    if isinstance(known, str):
        raise TypeError(f"there is no evidence to read: {known}")
    until_evidence, field = known
    with torch.no_grad():
        values = until_evidence(images)
    chosen = values[torch.arange(len(images), device=values.device), targets]
    return spread(chosen / chosen[0].numel(), field, images.shape[2:])
