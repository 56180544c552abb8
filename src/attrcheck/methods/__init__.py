"""Methods, the competitors: (model, images, targets) -> maps, one signed float per pixel."""

from __future__ import annotations

from attrcheck.contracts import Method
from attrcheck.registry import Registry

method = Registry(
    "method",
    Method,
    __name__,
    prefixes={
        "captum": "attrcheck.adapters.captum_methods",
        "gradcam": "attrcheck.adapters.gradcam",
    },
)

__all__ = ["Method", "method"]
