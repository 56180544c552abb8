"""attrcheck: pytest for image attribution methods.

Six decorators register what is one's own; none of them imports torch. Four functions make methods
and protocols from those of other libraries, `folder` makes a dataset from pictures, and classes are
what registered functions take and return. `attribute`, `score`, `rank`, `fuse` and `show` are for
notebooks. `torchvision` and `timm` are those libraries, which do not import everywhere by
themselves. All are imported when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# As a registry, not as the room of that name, which would hide it once it is imported.
from attrcheck.removal import removal

if TYPE_CHECKING:
    from attrcheck.adapters.captum_methods import captum_method
    from attrcheck.adapters.captum_metrics import captum_protocol
    from attrcheck.adapters.gradcam import gradcam_method
    from attrcheck.adapters.quantus import quantus_protocol
    from attrcheck.adapters.vision import torchvision
    from attrcheck.checks import check
    from attrcheck.contracts import (
        Batch,
        Dataset,
        Model,
        Pictures,
        Preprocessing,
        Protocol,
        Reduction,
        Verdict,
    )
    from attrcheck.datasets import dataset
    from attrcheck.datasets.folders import folder
    from attrcheck.methods import method
    from attrcheck.models import model
    from attrcheck.notebook.attributing import attribute
    from attrcheck.notebook.ranking import fuse, rank
    from attrcheck.notebook.scoring import score
    from attrcheck.notebook.showing import show
    from attrcheck.protocols import protocol

__version__ = "0.2.0"
__all__ = [
    "Batch",
    "Dataset",
    "Model",
    "Pictures",
    "Preprocessing",
    "Protocol",
    "Reduction",
    "Verdict",
    "attribute",
    "captum_method",
    "captum_protocol",
    "check",
    "dataset",
    "folder",
    "fuse",
    "gradcam_method",
    "method",
    "model",
    "protocol",
    "quantus_protocol",
    "rank",
    "removal",
    "score",
    "show",
    "torchvision",
]

_HOMES = {
    "Batch": "contracts",
    "Dataset": "contracts",
    "Model": "contracts",
    "Pictures": "contracts",
    "Preprocessing": "contracts",
    "Protocol": "contracts",
    "Reduction": "contracts",
    "Verdict": "contracts",
    "attribute": "notebook.attributing",
    "captum_method": "adapters.captum_methods",
    "captum_protocol": "adapters.captum_metrics",
    "check": "checks",
    "dataset": "datasets",
    "folder": "datasets.folders",
    "fuse": "notebook.ranking",
    "gradcam_method": "adapters.gradcam",
    "method": "methods",
    "model": "models",
    "protocol": "protocols",
    "quantus_protocol": "adapters.quantus",
    "rank": "notebook.ranking",
    "score": "notebook.scoring",
    "show": "notebook.showing",
    "timm": "adapters.vision",
    "torchvision": "adapters.vision",
}


def __getattr__(name: str) -> Any:
    """What is public, from its room."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
