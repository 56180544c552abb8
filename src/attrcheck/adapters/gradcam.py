"""Any CAM class of pytorch-grad-cam as a method: `gradcam:GradCAM`, or with your own settings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

import attrcheck.adapters.vision  # noqa: F401  # pytorch-grad-cam imports torchvision
from attrcheck.adapters.libraries import (
    CONSTANT,
    Settings,
    check,
    choose,
    one_by_one,
    parameters,
    stage_module,
    version_of,
)
from attrcheck.contracts import Method
from attrcheck.graph.grids import Layout
from attrcheck.methods.stages import needs_stage
from attrcheck.registry import RegistryError


def resolve(name: str) -> Method:
    """The method `gradcam:NAME`."""
    return Method(
        f"gradcam:{name}",
        gradcam_method(name),
        not_applicable=needs_stage,
        constant=CONSTANT,
        reference=f"pytorch_grad_cam.{name}",
    )


def gradcam_method(name: str, **settings: Any) -> Callable[..., Tensor]:
    """A method from a CAM class of pytorch-grad-cam: `gradcam_method("GradCAM", stage="layer3")`.

    Settings go to the class or to its call.
    """
    chosen = choose("pytorch-grad-cam", "attribution class", _classes(), name)
    takes = {**parameters(chosen), **parameters(chosen.__call__)}
    takes.pop("self")
    check(f"gradcam:{name}", takes, ("model", "target_layers", "input_tensor", "targets"), settings)
    # The version is an argument so that maps of another one are not taken for these.
    return partial(_attribute, version_of("grad-cam"), name, tuple(sorted(settings.items())))


def _attribute(
    version: str,
    name: str,
    settings: Settings,
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
) -> Tensor:
    """The map of a CAM class of pytorch-grad-cam for each image on its own."""
    given = dict(settings)
    stage = given.pop("stage", None)
    chosen = _classes()[name]
    build = {key: value for key, value in given.items() if key in parameters(chosen)}
    call = {key: value for key, value in given.items() if key not in build}

    def explain(image: Tensor, target: Tensor) -> Tensor:
        layer, layout = stage_module(model, image, stage)
        tokens = {} if layout.kind == "maps" else _for_tokens(chosen, layout)
        # The weights have no gradient, so the stage has one only if the image does.
        image.requires_grad_()
        with torch.enable_grad(), chosen(model, [layer], **{**tokens, **build}) as cam:
            maps = cam(input_tensor=image, targets=[_Logit(int(target))], **call)
        return torch.as_tensor(maps).to(image)

    return one_by_one(explain, images, targets, seeds)


def _for_tokens(chosen: type, layout: Layout) -> dict[str, Any]:
    """What a class must be told of a stage that holds tokens."""
    settings: dict[str, Any] = {"reshape_transform": layout.maps}
    if "ablation_layer" in parameters(chosen):
        ablation = importlib.import_module("pytorch_grad_cam.ablation_layer")
        settings["ablation_layer"] = ablation.AblationLayerVit()
    return settings


class _Logit:
    """What the map explains: one class of a row of logits."""

    def __init__(self, target: int) -> None:
        self.target = target

    def __call__(self, logits: Tensor) -> Tensor:
        return logits[..., self.target]


def _library() -> ModuleType:
    try:
        return importlib.import_module("pytorch_grad_cam")
    except ModuleNotFoundError as error:
        if error.name != "pytorch_grad_cam":
            raise
        raise RegistryError(
            "gradcam: needs pytorch-grad-cam, which is not installed; run `pip install grad-cam`"
        ) from error


def _classes() -> dict[str, type]:
    return {
        name: member
        for name, member in vars(_library()).items()
        if inspect.isclass(member) and "target_layers" in parameters(member)
    }
