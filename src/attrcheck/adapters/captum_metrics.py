"""Captum's metrics as protocols, `captum:infidelity` and `captum:sensitivity_max`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import captum.metrics
import torch
from torch import Tensor, nn

from attrcheck.adapters.libraries import check, choose, parameters, version_of
from attrcheck.adapters.metrics import Metric, Trial
from attrcheck.protocols import ProtocolSpec

METRICS: dict[str, Callable[..., Tensor]] = {
    "infidelity": captum.metrics.infidelity,
    "sensitivity_max": captum.metrics.sensitivity_max,
}
PROVIDED = ("forward_func", "explanation_func", "inputs", "attributions", "target")


@dataclass(frozen=True)
class Captum(Metric):
    """A metric of Captum, lower is better.

    infidelity: the mean square of (what the map says that a change costs - what it costs the
    logit). It depends on the scale of the map, unless `normalize` is set, which ignores its sign.
    sensitivity_max: the largest change of the map, by its norm, in a small box around the image.
    """

    library = "captum"

    def score(self, model: nn.Module, trial: Trial) -> float:
        """What Captum's function gives for the image."""
        given = dict(self.settings)
        function = METRICS[self.metric]
        if self.metric == "sensitivity_max":
            score = function(partial(_explain, trial), trial.image, **given)
        else:
            channels = trial.image.shape[1]
            score = function(
                model,
                inputs=trial.image,
                attributions=(trial.map[:, None] / channels).expand_as(trial.image),
                target=trial.label,
                **{"perturb_func": blank_square, **given},
            )
        return float(score)


def resolve(name: str) -> ProtocolSpec:
    """The protocol `captum:NAME`."""
    return ProtocolSpec(f"captum:{name}", captum_protocol(name))


def captum_protocol(name: str, **settings: Any) -> Callable[[], Captum]:
    """A protocol from one of Captum's metrics, `infidelity` or `sensitivity_max`.

    Settings go to the metric's function.
    """
    takes = parameters(choose("Captum", "metric", METRICS, name))
    free = {key: needed for key, needed in takes.items() if key not in PROVIDED}
    check(f"captum:{name}", free, ("perturb_func",), settings)
    return partial(Captum, name, version_of("captum"), False, tuple(sorted(settings.items())))


def blank_square(images: Tensor) -> tuple[Tensor, Tensor]:
    """Blank a square of a quarter of the sides at a random place: what is gone, what is left.

    For a linear model, its cost is the sum of the contributions inside it.
    """
    rows, columns = (_stretches(len(images), side) for side in images.shape[2:])
    gone = (rows[:, None, :, None] & columns[:, None, None, :]).to(images.device)
    return gone.expand_as(images).to(images.dtype), images.masked_fill(gone, 0)


def _stretches(count: int, side: int) -> Tensor:
    """Where a quarter of a side lies, [count, side]."""
    length = max(1, side // 4)
    start = torch.randint(side - length + 1, (count, 1))
    places = torch.arange(side)
    return (places >= start) & (places < start + length)


def _explain(trial: Trial, images: Tensor | tuple[Tensor, ...]) -> tuple[Tensor]:
    """Captum hands over images by themselves or in a tuple, and wants a tuple back."""
    return (trial.explain(images[0] if isinstance(images, tuple) else images),)
