"""Models: networks for the datasets that they know; the embedded ones ship with weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from attrcheck.contracts import Dataset, Model, Pictures
from attrcheck.datasets import dataset as datasets
from attrcheck.registry import Registry, select
from attrcheck.training import WEIGHTS

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ModelSpec:
    """A registered model: `build(dataset)` returns a network that maps [N, C, H, W] to logits.

    It is given a Dataset, or Pictures; it may return a Model, which says how the network wants its
    pictures and what its classes are called.

    embedded: `build` gives random weights, and those that ship with the package are loaded into
    it; any other model is built with its weights.
    datasets: comma-separated globs of the datasets that a model which is not embedded knows; one by
    prefix knows those that do not ship with attrcheck.
    offers: what protocols may need of it; without `gradients` it cannot be differentiated. An
    embedded one also offers its `architecture`, to be trained anew.
    leaf: classes or names of modules that stay in one piece where the network's graph is traced.
    concrete_args: arguments of forward() that tracing takes for given; all others but the image
    keep their defaults.
    depends: what else it depends on, as "file:PATH", "env:NAME" or "package:NAME".
    """

    name: str
    build: Callable[[Any], nn.Module | Model]
    embedded: bool = False
    datasets: str = "*"
    offers: tuple[str, ...] = ("gradients",)
    depends: Sequence[str] = ()
    leaf: Sequence[type[nn.Module] | str] = ()
    concrete_args: Mapping[str, Any] = field(default_factory=dict)

    @property
    def helped(self) -> bool:
        """Whether tracing is told more than the network."""
        return bool(self.leaf or self.concrete_args)

    def __post_init__(self) -> None:
        if self.embedded:
            object.__setattr__(self, "offers", (*self.offers, "architecture"))

    def make(self, data: Dataset | Pictures) -> Model:
        """The model for a dataset; an embedded one has random weights."""
        built = self.build(data)
        return built if isinstance(built, Model) else Model(built)

    def network(self, data: Dataset | Pictures) -> nn.Module:
        """The network alone."""
        return self.make(data).network

    def knows(self, dataset: str) -> bool:
        """Whether the model can classify the images of this dataset."""
        if self.embedded:
            return (WEIGHTS / f"{dataset}-{self.name}").is_dir()
        if model.spec_of(self.name) is not None and datasets.is_built_in(dataset):
            return False  # nobody trains public networks on these
        return bool(select([dataset], [part.strip() for part in self.datasets.split(",")]))


model = Registry(
    "model",
    ModelSpec,
    __name__,
    prefixes={
        "torchvision": "attrcheck.adapters.torchvision_models",
        "timm": "attrcheck.adapters.timm_models",
        "hf": "attrcheck.adapters.hf_models",
    },
)
