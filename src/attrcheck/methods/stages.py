"""Activations and gradients at the last convolutional stage, for maps made of them."""

from __future__ import annotations

import warnings
from typing import Any, cast
from weakref import WeakSet

import torch
from torch import Tensor, fx, nn

from attrcheck.errors import suggest
from attrcheck.graph.kinds import PRODUCTS
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.nodes import call_name, module_of, no_graph, signals
from attrcheck.tensors.images import enlarge

FINEST_PATCHES = 4
"""Patches per side of the grid that single deletion removes by default."""

ALL_ZERO = "zero everywhere if no region of the stage speaks for the class"

_WARNED: WeakSet[nn.Module] = WeakSet()


class CoarseGrid(UserWarning):
    """A stage with fewer cells than there are patches: a CAM on it cannot tell them apart."""


class _Tap(fx.Interpreter):
    """Runs a graph and cuts it at one node, which becomes the leaf that gradients end in."""

    def __init__(self, model: fx.GraphModule, stage: str) -> None:
        super().__init__(model)
        self.stage = stage
        self.activations = torch.empty(0)

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if n.name == self.stage:
            value = self.activations = value.detach().requires_grad_(torch.is_grad_enabled())
        return value


class _Grids(fx.Interpreter):
    """Runs a graph and notes the size of every map of more than one pixel."""

    def __init__(self, model: fx.GraphModule) -> None:
        super().__init__(model)
        self.grids: dict[str, tuple[int, int]] = {}

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        inside = n.op not in ("placeholder", "output")
        if inside and isinstance(value, Tensor) and value.ndim == 4 and value[0, 0].numel() > 1:
            self.grids[n.name] = (value.shape[2], value.shape[3])
        return value


def stage_node(model: nn.Module, images: Tensor, stage: str | None = None) -> fx.Node:
    """The node of a stage, given by its name or its module's; without one, the last stage."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"the last stage is known of a prepared graph, not {type(model).__name__}")
    if stage is None:
        name = last_stage(model, images)
        if name is None:
            raise ValueError(f"no convolution sees more than one pixel of {list(images.shape)}")
        return _named(model, name)
    interpreter = _Grids(model)
    with torch.no_grad():
        interpreter.run(torch.zeros_like(images[:1]))
    for node in model.graph.nodes:
        if node.name in interpreter.grids and stage in (node.name, str(node.target)):
            return cast(fx.Node, node)
    raise ValueError(_no_stage(stage, interpreter.grids))


def _named(model: fx.GraphModule, name: str) -> fx.Node:
    return next(cast(fx.Node, node) for node in model.graph.nodes if node.name == name)


def _no_stage(stage: str, grids: dict[str, tuple[int, int]]) -> str:
    last = {grid: name for name, grid in grids.items()}
    there = ", ".join(f"{name} ({h}x{w})" for (h, w), name in last.items()) or "none"
    hint = suggest(stage, grids)
    return f"the model has no stage {stage!r}; {hint} The last one of each size: {there}"


def stage_activations(
    model: nn.Module, images: Tensor, stage: str | None = None
) -> tuple[Tensor, Tensor]:
    """Activations [N, K, h, w] of the stage and logits; gradients end at the activations."""
    node = stage_node(model, images, stage)
    assert isinstance(model, fx.GraphModule)
    tap = _Tap(model, node.name)
    logits = tap.run(images.detach())
    _warn_if_coarse(model, node.name, tap.activations)
    return tap.activations, logits


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
    """Why a model has no last convolutional stage, or None."""
    if not isinstance(model, fx.GraphModule):
        return no_graph(model)
    tensors = signals(model.graph)
    convolved = attended = False
    for node in model.graph.nodes:
        module, call = module_of(model, node), call_name(node)
        if isinstance(module, nn.Conv2d) or call == "conv2d":
            convolved, attended = True, False
        # A product of two signals lets positions weigh each other.
        mixes = call in PRODUCTS and len(tensors.intersection(node.all_input_nodes)) > 1
        attends = "attention" in call or isinstance(module, nn.MultiheadAttention)
        attended = attended or mixes or attends
    if not convolved:
        return "the model has no convolution"
    if attended:
        return "attention follows the last convolution: it only cuts patches and is not a stage"
    return None
