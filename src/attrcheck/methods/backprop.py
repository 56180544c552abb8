"""Guided backpropagation, deconvolution and guided Grad-CAM: other rules for rectifiers."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn
from torch.autograd import Function

from attrcheck.graph.kinds import (
    ACTIVATIONS,
    LINEAR,
    MAXIMA,
    RECTIFIERS,
    SHAPE_CALLS,
    Multiply,
    Product,
    Unit,
)
from attrcheck.graph.nodes import obstacle
from attrcheck.methods import method
from attrcheck.methods._rules import BackwardRule, backpropagate, ruled, valued
from attrcheck.methods.stages import ALL_ZERO, grad_cam, needs_stage

SMOOTH_KINDS = (
    *(nn.LayerNorm, nn.GroupNorm, nn.InstanceNorm2d, nn.Softmax, Product, Unit),
    nn.MultiheadAttention,
)
SMOOTH_CALLS = ("matmul", "bmm", "layer_norm", "scaled_dot_product_attention", "sum")
"""What rectifies nothing and hides no rectifier, so that its true derivative is right."""


class _Rectified(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        return grads[0].clamp(min=0)


def rectified(x: Tensor) -> Tensor:
    """x, but only positive gradient passes back through it: relu(upstream)."""
    return _Rectified.apply(x)  # type: ignore[no-any-return,no-untyped-call]


def guided(module: nn.Module, x: Tensor) -> Tensor:
    """act'(x) * relu(upstream)."""
    return rectified(module(x))


def deconvolved(module: nn.Module, x: Tensor) -> Tensor:
    """relu(upstream), whatever x is."""
    return valued(rectified(x), module(x.detach()))


# A gate does not rectify: it never blocks, it weighs, and a negative gradient at a gate tells of
# the signal that it weighs, not of a feature that speaks against the class. So gates keep their
# derivative under both rules; the rectifiers inside the branch that computes a gate do not.
GUIDED: dict[type[nn.Module], BackwardRule] = dict.fromkeys(RECTIFIERS, guided)
DECONVOLVED: dict[type[nn.Module], BackwardRule] = dict.fromkeys(RECTIFIERS, deconvolved)


def needs_rectifiers(model: nn.Module) -> str | None:
    """Why a rule on rectifiers would miss some of a model's, or would be the plain gradient."""
    kinds = (*ACTIVATIONS, *LINEAR, *MAXIMA, Multiply, *SMOOTH_KINDS)
    if reason := obstacle(model, kinds, (*SHAPE_CALLS, *SMOOTH_CALLS)):
        return reason
    if not any(type(module) in RECTIFIERS for module in model.modules()):
        return "the model has no rectifying activation, so this would be the plain gradient"
    return None


@method(
    "guided_backprop",
    not_applicable=needs_rectifiers,
    family="propagation",
    passes=(1, 1),
    reference="Springenberg et al. 2014",
)
def guided_backprop(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The gradient, of which every rectifying activation lets only the positive part pass.

    act'(x) * relu(upstream), for ReLU, SiLU, GELU and their like; gates keep their derivative.
    """
    return backpropagate(ruled(model, GUIDED), images, targets).sum(1)


@method(
    "deconvolution",
    not_applicable=needs_rectifiers,
    family="propagation",
    passes=(1, 1),
    reference="Zeiler and Fergus 2013",
)
def deconvolution(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """The gradient, with relu(upstream) in place of every rectifying activation's derivative.

    Max pooling keeps its switches, and gates keep their derivative.
    """
    return backpropagate(ruled(model, DECONVOLVED), images, targets).sum(1)


def needs_rectifiers_and_stage(model: nn.Module) -> str | None:
    """Why one of the two factors cannot be right, or None."""
    return needs_rectifiers(model) or needs_stage(model)


@method(
    "guided_gradcam",
    family="propagation",
    passes=(2, 2),
    reference="Selvaraju et al. 2017",
    not_applicable=needs_rectifiers_and_stage,
    constant=ALL_ZERO,
)
def guided_gradcam(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Guided backpropagation times Grad-CAM at the last stage."""
    return guided_backprop(model, images, targets) * grad_cam(model, images, targets)
