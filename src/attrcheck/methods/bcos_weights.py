"""The explanation of a B-cos network: its own weights (Boehle et al. 2022)."""

from __future__ import annotations

from torch import Tensor, fx, nn

from attrcheck.graph.bcos import BcosConv2d, Encode
from attrcheck.graph.kinds import AVERAGES, SHAPE_CALLS, SHAPES, Add, call_name, obstacle, signals
from attrcheck.methods import method
from attrcheck.methods._rules import Rule, backpropagate, ruled, valued


def applies(model: nn.Module) -> str | None:
    """Between the encoded image and the logits all must be B-cos, or linear and without bias."""
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


FROZEN: dict[type[nn.Module], Rule] = {BcosConv2d: frozen, Encode: weighed}


@method(
    "bcos_weights",
    axioms={"conservation": 1e-3},
    family="self-explaining",
    passes=(1, 1),
    reference="Boehle et al. 2022",
    not_applicable=applies,
)
def bcos_weights(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """W(x) * e(x), summed over the channels of the encoded image e(x); sums to the logit."""
    return backpropagate(ruled(model, FROZEN), images, targets).sum(1)
