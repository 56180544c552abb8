"""The one door to torchvision, timm and transformers: `from attrcheck.adapters.vision import timm`.

The usual wheels of torchvision are built for CUDA; beside a CPU-only torch their C++ library does
not load, and the import fails because two operators are missing that no classifier uses. Whatever
imports torchvision, timm and transformers among others, is imported after this module.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

import torch

from attrcheck.errors import AttrcheckError

SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
OPERATORS = ("torchvision::nms", "torchvision::qnms")
INSTALL = {
    "torchvision": "torchvision",
    "timm": "attrcheck[vision]",
    "transformers": "attrcheck[hf]",
    "huggingface_hub": "attrcheck[hf]",
}
"""What to ask pip for where a library is missing."""


class VisionError(AttrcheckError):
    """A library that is needed but not installed."""


def load() -> ModuleType:
    """torchvision; where its operators are missing, their schemas are declared first."""
    try:
        return _import("torchvision")
    except RuntimeError as error:
        if not any(f"operator {name} does not exist" in str(error) for name in OPERATORS):
            raise
    for name in OPERATORS:
        if not hasattr(torch.ops.torchvision, name.partition("::")[2]):
            torch.library.define(name, SCHEMA)
    # The failed import has left modules behind that are only half there.
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]
    return importlib.import_module("torchvision")


def _import(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise VisionError(f"{name} is not installed; run `pip install {INSTALL[name]}`") from error


def __getattr__(name: str) -> ModuleType:
    """Any library but torchvision, imported when it is first asked for."""
    if name not in INSTALL:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import(name)


torchvision = load()
