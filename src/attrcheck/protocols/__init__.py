"""Protocols, the judges: observe what the model does for each image, then reduce to a score."""

from __future__ import annotations

import importlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from attrcheck.registry import Registry

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn

    from attrcheck.models._tuning import Tuning

Rows: TypeAlias = "dict[str, NDArray[np.generic]]"
"""What was observed, by name; the first axis of every array is the image."""

Need: TypeAlias = Literal["masks", "training", "gradients", "architecture"]
"""Ground truth or a training split of the dataset; a model that can be differentiated, or built
without weights."""


@dataclass(frozen=True)
class Batch:
    """Some images of a case: normalised, with labels and a seed each to break ties.

    intact: `correct`, `probability` and `logit` of the images as they are, observed once.
    masks: the ground truth [N, H, W], where the dataset has one. chance: the accuracy of a guess.
    attribute: the method on trial, on other images in place of these: [N, C, H, W] -> [N, H, W].
    """

    images: Tensor
    labels: Tensor
    seeds: tuple[int, ...]
    intact: Rows
    masks: Tensor | None = None
    chance: float = 0.0
    attribute: Callable[[Tensor], Tensor] | None = None


@dataclass(frozen=True)
class Lessons:
    """What networks of a protocol's own learn from: training images, and the method's maps of them.

    learn: images in the place of these, and epochs in, a new network of the model's kind out.
    """

    images: Tensor
    seeds: tuple[int, ...]
    maps: Tensor
    learn: Callable[[Tensor, int], nn.Module]


@dataclass(frozen=True)
class Reduction:
    """A score, the curve behind it and, where the score is their mean, the scores of the images.

    A score that is not defined is NaN: it is left out of the ranking, and counted. So are images
    whose own score is NaN, and others that the score says nothing about: `undefined` in all.
    """

    score: float
    curve: tuple[list[float], list[float]] | None = None
    per_image: NDArray[np.float64] | None = None
    undefined: int = 0

    @classmethod
    def mean(cls, per_image: NDArray[np.generic]) -> Reduction:
        """The mean over the images that have a score, NaN if none has."""
        import numpy as np

        scores = per_image.astype(np.float64)
        defined = scores[np.isfinite(scores)]
        score = float(defined.mean()) if len(defined) else float("nan")
        return cls(score, per_image=scores, undefined=len(scores) - len(defined))


class Shared(ABC):
    """What a protocol sees without a map: observed once, for all methods and all protocols.

    Subclasses are frozen dataclasses: their fields say what is observed.
    """

    @property
    @abstractmethod
    def key(self) -> str:
        """Its name in the store."""

    @property
    def code(self) -> str:
        """A fingerprint of the code that observes."""
        return _code(self)

    @abstractmethod
    def observe(self, model: nn.Module, batch: Batch) -> Rows:
        """Rows that do not depend on maps."""


class Protocol(ABC):
    """Two pure functions: `observe` never looks across images, `reduce` never sees the model.

    Subclasses are frozen dataclasses: their fields are the settings, and part of every record.

    bounds: what no score goes below or above. sees: whether the values of a map count, or only
    their `order`, so that no strictly increasing transform of it changes a row.
    needs: what a dataset or model must offer, else there is no such case.
    least_images: with fewer, a warning. most_images: more than these do not take part.
    tuning: the fine-tuning that the model goes through before it is attributed and observed.
    lessons: images to train networks on that observe in the model's place; see `retrain`.
    shared: rows that need no map.
    """

    higher_is_better: bool
    bounds: tuple[float, float] = (-inf, inf)
    sees: Literal["order", "values"] = "values"
    needs: tuple[Need, ...] = ()
    least_images: int = 1
    most_images: int | None = None
    tuning: Tuning | None = None
    lessons: int = 0

    @property
    def shared(self) -> Shared | None:
        """What all methods share; None: nothing."""
        return None

    def observe_shared(self, model: nn.Module, batch: Batch) -> Rows:
        """The shared rows of a batch, where nobody keeps them."""
        return self.shared.observe(model, batch) if self.shared else {}

    @property
    def observation(self) -> str:
        """The name of what is observed; protocols of one class and one name share their rows."""
        return ""

    @property
    def code(self) -> str:
        """A fingerprint of the code that observes."""
        return _code(self)

    def retrain(self, lessons: Lessons) -> nn.Module:
        """What `observe` gets in the place of the model, made for the method; if `lessons`."""
        raise TypeError(f"{type(self).__name__} takes lessons, but does not say how to retrain")

    @abstractmethod
    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """Rows of what the model does when `maps` [N, H, W] guide the removal."""

    def settle(self, competitors: Sequence[Rows]) -> Protocol:
        """The judge that is fair to all of these; most judge a method without seeing others."""
        return self

    @abstractmethod
    def reduce(self, rows: Rows) -> Reduction:
        """The score of all rows together."""

    def resample(self, rows: Rows, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """The score when image i is drawn counts[b, i] times, for each b."""
        import numpy as np

        indices = np.arange(counts.shape[1])
        draws = (np.repeat(indices, row) for row in counts)
        found = (self.reduce({name: row[draw] for name, row in rows.items()}) for draw in draws)
        return np.array([reduction.score for reduction in found])


@dataclass(frozen=True)
class ProtocolSpec:
    """A registered protocol: a name and the function that makes it.

    `build()` may ask for `profile`, by that name, to take fewer steps or images where time is
    short. default: whether it runs unasked in any profile but full. known_failures: checks that it
    is known to fail, and why.
    """

    name: str
    build: Callable[..., Protocol]
    default: bool = True
    known_failures: Mapping[str, str] = field(default_factory=dict)

    def make(self, profile: str = "full") -> Protocol:
        """The judge as this profile wants it."""
        asks = "profile" in inspect.signature(self.build).parameters
        return self.build(profile=profile) if asks else self.build()


protocol = Registry(
    "protocol",
    ProtocolSpec,
    __name__,
    prefixes={
        "morf": f"{__name__}.morf",
        "lerf": f"{__name__}.lerf",
        "quantus": f"{__name__}._quantus",
        "captum": f"{__name__}._captum",
    },
)


def quantus_protocol(name: str, **settings: Any) -> Callable[[], Protocol]:
    """A protocol from a metric of Quantus: `protocol("flips")(quantus_protocol("PixelFlipping"))`.

    Settings go to the metric's class.
    """
    return _adapter("quantus")(name, **settings)


def captum_protocol(name: str, **settings: Any) -> Callable[[], Protocol]:
    """A protocol from one of Captum's metrics, `infidelity` or `sensitivity_max`.

    Settings go to the metric's function.
    """
    return _adapter("captum")(name, **settings)


def _adapter(prefix: str) -> Callable[..., Callable[[], Protocol]]:
    """Named by a string: an import would make its code part of every protocol's fingerprint."""
    adapt: Callable[..., Callable[[], Protocol]]
    adapt = importlib.import_module(protocol.prefixes[prefix]).adapt
    return adapt


def _code(observer: Shared | Protocol) -> str:
    """Of the class, and of the removal that a field of this name asks for."""
    from attrcheck.fingerprint import digest, of_code
    from attrcheck.removal import removal

    name = getattr(observer, "removal", None)
    return digest(of_code(type(observer)), of_code(removal.get(name).remove) if name else "")
