"""Activations and gradients at the last stage, of maps or of tokens, for maps made of them."""

from __future__ import annotations

import warnings
from typing import Any, cast
from weakref import WeakSet

import torch
from torch import Tensor, fx, nn

from attrcheck.errors import suggest
from attrcheck.graph.grids import Layout, Place, places, widths
from attrcheck.graph.halves import until
from attrcheck.graph.kinds import Product
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.nodes import PART, call_name, module_of, no_graph, sees_all
from attrcheck.tensors.images import enlarge
from attrcheck.tensors.memo import PerModel

FINEST_PATCHES = 4
"""Patches per side of the grid that single deletion removes by default."""

ATTENDED = (
    "attention follows the last convolution, which only cuts patches, and no layer norm shows "
    "which tensors are tokens"
)
ALL_ZERO = "zero everywhere if no region of the stage speaks for the class"

_WARNED: WeakSet[nn.Module] = WeakSet()
_HEADS: PerModel[fx.GraphModule] = PerModel()


class CoarseGrid(UserWarning):
    """A stage with fewer cells than there are patches: a CAM on it cannot tell them apart."""


class _Tap(fx.Interpreter):
    """Runs a graph and cuts it at one node, whose cells become the leaf that gradients end in."""

    def __init__(self, model: fx.GraphModule, stage: fx.Node, layout: Layout) -> None:
        super().__init__(model)
        self.stage, self.layout = stage.name, layout
        self.activations = torch.empty(0)

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if n.name == self.stage:
            value = value.detach()
            self.activations = self.layout.maps(value).requires_grad_(torch.is_grad_enabled())
            value = self.layout.put(self.activations, value)
        return value


def stage_of(model: nn.Module, images: Tensor, stage: str | None = None) -> tuple[fx.Node, Layout]:
    """The node of a stage, given by its name or its module's, and the layout of its cells.

    Without a name, the last stage.
    """
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"the last stage is known of a prepared graph, not {type(model).__name__}")
    nodes = {node.name: cast(fx.Node, node) for node in model.graph.nodes}
    if stage is None:
        last = last_stage(model, images)
        if last is None:
            raise ValueError(
                "no convolution, and no tokens behind one, see more than one pixel of "
                f"{list(images.shape)}"
            )
        return nodes[last.name], last.layout
    known = places(model, images)
    for place in known:
        if stage in (place.name, str(nodes[place.name].target)):
            return nodes[place.name], place.layout
    raise ValueError(_no_stage(stage, known))


def _no_stage(stage: str, known: tuple[Place, ...]) -> str:
    last = {place.layout.grid: place.name for place in known}
    there = ", ".join(f"{name} ({h}x{w})" for (h, w), name in last.items()) or "none"
    hint = suggest(stage, [place.name for place in known])
    return f"the model has no stage {stage!r}; {hint} The last one of each size: {there}"


def stage_activations(
    model: nn.Module, images: Tensor, stage: str | None = None
) -> tuple[Tensor, Tensor]:
    """Activations [N, K, h, w] of the stage and logits; gradients end at the activations."""
    node, layout = stage_of(model, images, stage)
    assert isinstance(model, fx.GraphModule)
    tap = _Tap(model, node, layout)
    logits = tap.run(images.detach())
    _warn_if_coarse(model, node.name, tap.activations)
    return tap.activations, logits


def stage_maps(model: nn.Module, images: Tensor, stage: str | None = None) -> Tensor:
    """Activations [N, K, h, w] of the stage, for no gradient: nothing behind it is run."""
    node, layout = stage_of(model, images, stage)
    assert isinstance(model, fx.GraphModule)
    head = _HEADS.get(model, node.name, lambda: until(model, node))
    with torch.inference_mode():
        activations = layout.maps(head(images))
    _warn_if_coarse(model, node.name, activations)
    return activations


def stage_tensors(
    model: nn.Module, images: Tensor, targets: Tensor, stage: str | None = None
) -> tuple[Tensor, Tensor]:
    """Activations [N, K, h, w] of the stage, and the gradients of the target logits there."""
    with torch.enable_grad():
        activations, logits = stage_activations(model, images, stage)
        chosen = logits.gather(1, targets[:, None]).sum()
        (gradients,) = torch.autograd.grad(chosen, activations)
    return activations.detach(), gradients


def _warn_if_coarse(model: nn.Module, stage: str, activations: Tensor) -> None:
    height, width = activations.shape[2:]
    if min(height, width) < FINEST_PATCHES and model not in _WARNED:
        _WARNED.add(model)
        warnings.warn(
            f"the stage {stage!r} of {type(model).__name__} is a grid of {height}x{width}, coarser "
            f"than {FINEST_PATCHES}x{FINEST_PATCHES} patches: a CAM on it cannot rank them; choose "
            "an earlier one with functools.partial(method, stage=...)",
            CoarseGrid,
            stacklevel=2,
        )


def combine(weights: Tensor, activations: Tensor, images: Tensor) -> Tensor:
    """relu(sum over k of weights * A_k), bilinearly enlarged to the image: [N, H, W]."""
    return enlarge((weights * activations).sum(1).relu(), images)


def grad_cam(model: nn.Module, images: Tensor, targets: Tensor, stage: str | None = None) -> Tensor:
    """relu(sum over k of A_k * mean of df/dA_k), bilinearly enlarged to the image: [N, H, W]."""
    activations, gradients = stage_tensors(model, images, targets, stage)
    return combine(gradients.mean((2, 3), keepdim=True), activations, images)


def needs_stage(model: nn.Module) -> str | None:
    """Why a model has no grid of cells that are read for the class, or None."""
    reason = needs_maps(model)
    if reason == ATTENDED and widths(cast(fx.GraphModule, model)):
        return None
    return reason


def needs_maps(model: nn.Module) -> str | None:
    """Why a model has no last stage of maps [N, K, h, w], or None."""
    if not isinstance(model, fx.GraphModule):
        return no_graph(model)
    convolved = attended = False
    for node in model.graph.nodes:
        module, call = module_of(model, node), call_name(node)
        if isinstance(module, nn.Conv2d) or call == "conv2d":
            convolved, attended = True, False
        # A product of two signals lets positions weigh each other.
        attends = isinstance(module, (Product, nn.MultiheadAttention))
        attended = attended or attends or "attention" in call
    if not convolved:
        return "the model has no convolution"
    if not sees_all(model):
        return PART
    return ATTENDED if attended else None
