"""Activations and gradients at the last convolutional stage, for maps made of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from attrcheck.models._graph import last_stage


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
            value = self.activations = value.detach().requires_grad_()
        return value


def stage_tensors(model: nn.Module, images: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Activations [N, K, h, w] of the last stage, and the gradients of the target logits there."""
    if not isinstance(model, fx.GraphModule):
        raise TypeError(f"the last stage is known of a prepared graph, not {type(model).__name__}")
    stage = last_stage(model, images)
    if stage is None:
        raise ValueError(f"no convolution sees more than one pixel of {list(images.shape)}")
    tap = _Tap(model, stage)
    with torch.enable_grad():
        logits = tap.run(images.detach()).gather(1, targets[:, None])
        (gradients,) = torch.autograd.grad(logits.sum(), tap.activations)
    return tap.activations.detach(), gradients


def grad_cam(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """relu(sum over k of A_k * mean of df/dA_k), bilinearly enlarged to the image: [N, H, W]."""
    activations, gradients = stage_tensors(model, images, targets)
    weights = gradients.mean((2, 3), keepdim=True)
    cam = (weights * activations).sum(1, keepdim=True).relu()
    return F.interpolate(cam, images.shape[2:], mode="bilinear", align_corners=False)[:, 0]


def needs_stage(model: nn.Module) -> str | None:
    """Why a model has no last convolutional stage, or None."""
    if not isinstance(model, fx.GraphModule):
        return "the model is not a prepared graph: it could not be traced, see the warning"
    if not any(isinstance(module, nn.Conv2d) for module in model.modules()):
        return "the model has no convolution"
    return None
