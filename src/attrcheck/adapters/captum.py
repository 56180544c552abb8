"""Any attribution class of Captum as a method: `captum:Lime`, or with settings of one's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import captum.attr
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
from attrcheck.methods.stages import needs_stage
from attrcheck.registry import RegistryError
from attrcheck.tensors.batching import samples_at_once
from attrcheck.tensors.images import enlarge

PATCHES = 8
"""Features a side, where a class perturbs features."""

CLASSES: dict[str, Any] = {
    name: found
    for name, found in vars(captum.attr).items()
    if inspect.isclass(found)
    and issubclass(found, captum.attr.Attribution)
    and hasattr(found, "attribute")
}
MODEL = ("model", "forward_func")
PERMUTES = ("FeaturePermutation", "LayerFeaturePermutation")
ENDLESS = "ShapleyValues"
"""Tries all orders of the features, and so never ends with the patches of the others."""


def resolve(name: str) -> Method:
    """The method `captum:NAME`."""
    attribute = captum_method(name)
    return Method(
        f"captum:{name}",
        attribute,
        not_applicable=needs_stage if "layer" in parameters(CLASSES[name]) else lambda model: None,
        constant=CONSTANT,
        reference=f"captum.attr.{name}",
    )


def captum_method(name: str, **settings: Any) -> Callable[..., Tensor]:
    """A method from a class of Captum: `method("lime_200")(captum_method("Lime", n_samples=200))`.

    Settings go to the class or to its `attribute`; `stage` names the layer of a Layer class.
    """
    found: Any = choose("Captum", CLASSES, name)
    takes = {**parameters(found), **parameters(found.attribute)}
    takes.pop("self")
    provided = {*MODEL, "layer", "inputs", "target", *_DEFAULTS}
    if name in PERMUTES:
        raise RegistryError(f"captum:{name} permutes a batch, and cannot explain one image")
    if name == ENDLESS:
        takes["feature_mask"] = True
        provided.discard("feature_mask")
    check(f"captum:{name}", takes, provided, settings)
    return partial(_attribute, name, tuple(sorted(settings.items())))


def _attribute(
    name: str,
    settings: Settings,
    model: nn.Module,
    images: Tensor,
    targets: Tensor,
    *,
    seeds: tuple[int, ...],
) -> Tensor:
    """What a class of Captum attributes to each image on its own, summed over channels."""
    given = dict(settings)
    stage = given.pop("stage", None)
    found = CLASSES[name]
    builds, calls = parameters(found), parameters(found.attribute)
    # Where it need not be given, Captum's own baseline is one blank image.
    wanted = [each for each in _DEFAULTS if each in calls and (calls[each] or each != "baselines")]

    def explain(image: Tensor, target: Tensor) -> Tensor:
        offers = {each: _DEFAULTS[each](model, image) for each in wanted}
        offers |= {"inputs": image.requires_grad_(), "target": target, **given}
        offers |= dict.fromkeys(MODEL, model)
        if "layer" in builds:
            offers["layer"] = stage_module(model, image, stage)
        built = found(**{each: offers[each] for each in builds if each in offers})
        result = built.attribute(**{each: offers[each] for each in calls if each in offers})
        while not isinstance(result, Tensor):
            result = result[0]
        return enlarge(result.detach().sum(1).to(image), image)

    return one_by_one(explain, images, targets, seeds)


def _zeros(model: nn.Module, image: Tensor) -> Tensor:
    """Two blank images: Captum insists on a distribution where it must be given one."""
    return torch.zeros_like(image).repeat(2, 1, 1, 1)


def _patches(model: nn.Module, image: Tensor) -> Tensor:
    """The number of the patch that each pixel belongs to, in all channels the same."""
    rows, columns = (
        torch.arange(side, device=image.device) * PATCHES // side for side in image.shape[2:]
    )
    return (rows[:, None] * PATCHES + columns)[None, None]


def _windows(model: nn.Module, image: Tensor) -> tuple[int, ...]:
    channels, *sides = image.shape[1:]
    return (channels, *(max(1, side // PATCHES) for side in sides))


def _strides(model: nn.Module, image: Tensor) -> tuple[int, ...]:
    channels, *sides = _windows(model, image)
    return (channels, *(max(1, side // 2) for side in sides))


_DEFAULTS: dict[str, Callable[[nn.Module, Tensor], Any]] = {
    "baselines": _zeros,
    "feature_mask": _patches,
    "sliding_window_shapes": _windows,
    "strides": _strides,
    "perturbations_per_eval": samples_at_once,
    "internal_batch_size": samples_at_once,
}
