"""Any attribution class of Captum as a method: `captum:Lime`, or with settings of your own."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import captum.attr
import torch
from torch import Tensor, nn

from attrcheck.adapters.libraries import (
    CONSTANT,
    Settings,
    check,
    choose,
    one_by_one,
    parameters,
    stage_module,
)
from attrcheck.contracts import Method
from attrcheck.methods.stages import needs_maps
from attrcheck.registry import RegistryError
from attrcheck.tensors.batching import samples_at_once
from attrcheck.tensors.images import enlarge

PATCHES = 8
"""Features along each side of an image, where a class perturbs features."""

CLASSES: dict[str, Any] = {
    name: member
    for name, member in vars(captum.attr).items()
    if inspect.isclass(member)
    and issubclass(member, captum.attr.Attribution)
    and hasattr(member, "attribute")
}
MODEL = ("model", "forward_func")
PERMUTES = ("FeaturePermutation", "LayerFeaturePermutation")
ENDLESS = "ShapleyValues"
"""Tries all orders of the features: with as many patches as the other classes it never ends."""


def resolve(name: str) -> Method:
    """The method `captum:NAME`."""
    attribute = captum_method(name)
    return Method(
        f"captum:{name}",
        attribute,
        not_applicable=needs_maps if "layer" in parameters(CLASSES[name]) else lambda model: None,
        constant=CONSTANT,
        reference=f"captum.attr.{name}",
    )


def captum_method(name: str, **settings: Any) -> Callable[..., Tensor]:
    """A method from a class of Captum: `method("lime_200")(captum_method("Lime", n_samples=200))`.

    Settings go to the class or to its `attribute`; `stage` names the layer of a Layer class.
    """
    chosen = choose("Captum", "attribution class", CLASSES, name)
    takes = {**parameters(chosen), **parameters(chosen.attribute)}
    takes.pop("self")
    provided = {*MODEL, "layer", "inputs", "target", *_DEFAULTS}
    if name in PERMUTES:
        raise RegistryError(f"captum:{name} permutes a batch, so it cannot explain one image")
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
    chosen = CLASSES[name]
    builds, calls = parameters(chosen), parameters(chosen.attribute)
    # Where it need not be given, Captum's own baseline is one blank image.
    wanted = [key for key in _DEFAULTS if key in calls and (calls[key] or key != "baselines")]

    def explain(image: Tensor, target: Tensor) -> Tensor:
        offers = {key: _DEFAULTS[key](model, image) for key in wanted}
        offers |= {"inputs": image.requires_grad_(), "target": target, **given}
        offers |= dict.fromkeys(MODEL, model)
        if "layer" in builds:
            offers["layer"], layout = stage_module(model, image, stage)
            if layout.kind != "maps":
                raise ValueError(f"the last stage holds tokens, and {name} reads maps")
        built = chosen(**{key: offers[key] for key in builds if key in offers})
        result = built.attribute(**{key: offers[key] for key in calls if key in offers})
        while not isinstance(result, Tensor):
            result = result[0]
        return enlarge(result.detach().sum(1).to(image), image)

    return one_by_one(explain, images, targets, seeds)


def _zeros(model: nn.Module, image: Tensor) -> Tensor:
    """Two blank images: Captum insists on a distribution where it must be given one."""
    return torch.zeros_like(image).repeat(2, 1, 1, 1)


def _patches(model: nn.Module, image: Tensor) -> Tensor:
    """The number of the patch that each pixel belongs to, the same in all channels."""
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
