"""Any CAM class of pytorch-grad-cam as a method: `gradcam:GradCAM`, or with one's own settings."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from attrcheck.adapters.classes import (
    CONSTANT,
    Settings,
    check,
    choose,
    one_by_one,
    parameters,
    stage_module,
)
from attrcheck.contracts import Method
from attrcheck.errors import AttrcheckError
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
    found = choose("pytorch-grad-cam", _classes(), name)
    takes = {**parameters(found), **parameters(found.__call__)}
    takes.pop("self")
    check(f"gradcam:{name}", takes, ("model", "target_layers", "input_tensor", "targets"), settings)
    # The version is an argument so that maps of another one are not taken for these.
    return partial(_attribute, _version(), name, tuple(sorted(settings.items())))


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
    found = _classes()[name]
    build = {each: value for each, value in given.items() if each in parameters(found)}
    call = {each: value for each, value in given.items() if each not in build}

    def explain(image: Tensor, target: Tensor) -> Tensor:
        layer = stage_module(model, image, stage)
        # The weights need no gradient, so that the stage has one only if the image does.
        image.requires_grad_()
        with torch.enable_grad(), found(model=model, target_layers=[layer], **build) as cam:
            maps = cam(input_tensor=image, targets=[_Logit(int(target))], **call)
        return torch.as_tensor(maps).to(image)

    return one_by_one(explain, images, targets, seeds)


class _Logit:
    """What the map explains: one class of a row of logits."""

    def __init__(self, target: int) -> None:
        self.target = target

    def __call__(self, logits: Tensor) -> Tensor:
        return logits[..., self.target]


def _library() -> ModuleType:
    try:
        importlib.import_module("attrcheck.adapters.vision")  # it imports torchvision
        return importlib.import_module("pytorch_grad_cam")
    except (ModuleNotFoundError, AttrcheckError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name != "pytorch_grad_cam":
            raise
        raise RegistryError(
            "gradcam: needs pytorch-grad-cam, which is not installed; run `pip install grad-cam`"
        ) from error


def _classes() -> dict[str, type]:
    return {
        name: found
        for name, found in vars(_library()).items()
        if inspect.isclass(found) and "target_layers" in parameters(found)
    }


def _version() -> str:
    try:
        return version("grad-cam")
    except PackageNotFoundError:
        return "unknown"
