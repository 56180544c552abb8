"""Teach public architectures a dataset for which they have no public weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from attrcheck.contracts import Dataset, Model, Pictures
from attrcheck.datasets import dataset as datasets
from attrcheck.engine.loading import seen_by
from attrcheck.errors import AttrcheckError, ModelError
from attrcheck.models import model as models
from attrcheck.papers.arranging import weights_path
from attrcheck.training.epochs import EpochRecipe, train_by_epochs

RANDOM = "random"
"""Behind the @ of a spec: the architecture for as many classes as the dataset has."""


def teach(
    dataset: str,
    model: str,
    folder: Path,
    recipe: EpochRecipe,
    seed: int = 0,
    device: str = "cpu",
    fresh: bool = False,
    report: Callable[[str], None] = print,
    progress: Callable[[str], None] = lambda text: None,
) -> None:
    """Train a model, given by a spec, where the suites look for its weights: in a data folder."""
    name = name_of(model)
    path, what = weights_path(folder, dataset, name), f"{dataset}-{name}"
    if path.is_file() and not fresh:
        report(f"{what}: {path} is there already; --fresh trains it anew")
        return
    raw = replace(datasets.get(dataset).load(), name=dataset)
    built, initial = initialised(model, raw)
    score = train_by_epochs(
        built.network.to(device).requires_grad_(),
        seen_by(built, raw, name),
        path.with_suffix(".safetensors"),
        recipe,
        seed,
        lambda text: progress(f"{what}: {text}"),
        built.preprocessing,
        initial=initial,
    )
    report(f"{what}: accuracy {score:.4f} from {initial}, written to {path}")


def name_of(model: str) -> str:
    """What the weights of a model are called: its alias, else that of its architecture.

    >>> name_of("timm:inception_v4.tf_in1k"), name_of("torchvision:resnet18@IMAGENET1K_V1")
    ('inception_v4', 'resnet18')
    """
    _, colon, rest = model.partition(":")
    return rest.partition("@")[0].partition(".")[0] if colon else model


def initialised(model: str, data: Dataset | Pictures) -> tuple[Model, str]:
    """The architecture for a dataset's classes, and the weights that it begins with.

    Those of the spec where they are in a cache or a file, but for the last layer, else random ones.
    """
    spec = models.spec_of(model)
    if spec is None:
        raise ModelError(f"model {model!r} is not a spec such as torchvision:resnet18")
    architecture = f"{spec.prefix}:{spec.rest.partition('@')[0]}"
    built = models.get(f"{architecture}@{RANDOM}").make(data)
    if spec.rest.endswith(f"@{RANDOM}"):
        return built, "random weights"
    try:
        public = models.get(str(spec)).make(data).network.state_dict()
    except AttrcheckError:
        if "@" in spec.rest:
            raise
        return built, f"random weights, as those of {spec} are not here"
    own = built.network.state_dict()
    fitting = {key: value for key, value in public.items() if _fits(own.get(key), value)}
    built.network.load_state_dict({**own, **fitting})
    return built, f"the weights of {spec}"


def _fits(own: torch.Tensor | None, given: torch.Tensor) -> bool:
    return own is not None and own.shape == given.shape
