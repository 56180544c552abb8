"""Captum's metrics as protocols, `captum:infidelity` and `captum:sensitivity_max`.

And what metrics of any library share here: they score one image at a time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from itertools import zip_longest
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from attrcheck.attribution import _seeded
from attrcheck.errors import AttrcheckError
from attrcheck.fingerprint import digest, of_code
from attrcheck.methods._adapters import Settings, check, parameters
from attrcheck.protocols import Batch, Need, Protocol, ProtocolSpec, Reduction, Rows
from attrcheck.registry import RegistryError

METRICS = ("infidelity", "sensitivity_max")
PROVIDED = ("forward_func", "explanation_func", "inputs", "attributions", "target")


@dataclass(frozen=True)
class Trial:
    """One image [1, C, H, W] with its label, its map and its mask [1, H, W]."""

    image: Tensor
    label: Tensor
    map: Tensor
    mask: Tensor | None
    ask: Callable[[Tensor], Tensor]

    def explain(self, images: Tensor) -> Tensor:
        """The maps [K, H, W] that the method gives K versions of the image."""
        return self.map if torch.equal(images, self.image) else self.ask(images)


@dataclass(frozen=True)
class Metric(Protocol):
    """A metric of another library; the score is the mean over the images where it is defined.

    Settings may hold functions, whose code counts and not their repr.
    """

    library: ClassVar[str]
    metric: str
    version: str
    higher_is_better: bool
    settings: Settings = field(default=(), repr=False)
    needs: tuple[Need, ...] = ()

    @property
    def name(self) -> str:
        """As it is asked for."""
        return f"{self.library}:{self.metric}"

    @property
    def code(self) -> str:
        """The settings are part of it."""
        return digest(super().code, _stable(dict(self.settings)))

    @abstractmethod
    def score(self, model: nn.Module, trial: Trial) -> float:
        """The score of one image, NaN where it has none."""

    def observe(self, model: nn.Module, batch: Batch, maps: Tensor, shared: Rows) -> Rows:
        """The `score` [N] of each image.

        A method explains a whole batch. So a metric that asks for further maps runs twice: first
        to note what each image wants explained, then, with all that explained together, to score.
        """
        wanted: list[dict[str, Tensor]] = [{} for _ in batch.seeds]

        def note(place: int, images: Tensor) -> Tensor:
            wanted[place] |= {digest(image): image.detach().clone() for image in images}
            return maps[place].expand(len(images), -1, -1).clone()

        scores = self._scores(model, batch, maps, note)
        if any(wanted):
            found = self._explained(batch, wanted)

            def tell(place: int, images: Tensor) -> Tensor:
                keys = [digest(image) for image in images]
                if not found[place].keys() >= set(keys):
                    raise AttrcheckError(
                        f"{self.name} changes images by what it is told of the maps, so what it "
                        "wants explained cannot be known beforehand"
                    )
                return torch.stack([found[place][key] for key in keys])

            scores = self._scores(model, batch, maps, tell)
        return {"score": np.array(scores, dtype=np.float64)}

    def reduce(self, rows: Rows) -> Reduction:
        """The mean, images without a score left out and counted."""
        scores = rows["score"].astype(np.float64)
        defined = scores[np.isfinite(scores)]
        return Reduction(
            score=float(defined.mean()) if len(defined) else float("nan"),
            per_image=scores,
            undefined=len(scores) - len(defined),
        )

    def _scores(
        self, model: nn.Module, batch: Batch, maps: Tensor, ask: Callable[[int, Tensor], Tensor]
    ) -> list[float]:
        """Each image on its own, with the global generators seeded for it alone."""
        scores = []
        device = batch.images.device
        for place, seed in enumerate(batch.seeds):
            one = slice(place, place + 1)
            trial = Trial(
                image=batch.images[one].detach().clone(),
                label=batch.labels[one],
                map=maps[one],
                mask=None if batch.masks is None else batch.masks[one],
                ask=partial(ask, place),
            )
            try:
                with _seeded(seed, [device] if device.type == "cuda" else []):
                    scores.append(self.score(model, trial))
            except AttrcheckError:
                raise
            except Exception as error:
                raise AttrcheckError(
                    f"{self.name} raised {type(error).__name__}: {error}; if it wants other "
                    f"settings, register it with attrcheck.{self.library}_protocol"
                ) from error
        return scores

    def _explained(self, batch: Batch, wanted: list[dict[str, Tensor]]) -> list[dict[str, Tensor]]:
        """The map of every wanted image."""
        if batch.attribute is None:
            raise AttrcheckError(f"{self.name} needs `Batch.attribute`, to explain changed images")
        found: list[dict[str, Tensor]] = [{} for _ in wanted]
        for turn in zip_longest(*(each.items() for each in wanted)):
            # An image that wants no more of them is explained as it is.
            images = [pair[1] if pair else batch.images[n] for n, pair in enumerate(turn)]
            maps = batch.attribute(torch.stack(images))
            for known, pair, explained in zip(found, turn, maps, strict=True):
                known |= {pair[0]: explained} if pair else {}
        return found


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
        function = _functions()[self.metric]
        if self.metric == "sensitivity_max":
            found = function(partial(_explain, trial), trial.image, **given)
        else:
            channels = trial.image.shape[1]
            found = function(
                model,
                inputs=trial.image,
                attributions=(trial.map[:, None] / channels).expand_as(trial.image),
                target=trial.label,
                **{"perturb_func": blank_square, **given},
            )
        return float(found)


def resolve(name: str) -> ProtocolSpec:
    """The protocol `captum:NAME`."""
    return ProtocolSpec(f"captum:{name}", adapt(name))


def adapt(name: str, **settings: Any) -> Callable[[], Captum]:
    """What makes the protocol from a metric of Captum; settings go to its function."""
    if name not in METRICS:
        raise RegistryError(f"Captum has no metric {name!r}; there are: {', '.join(METRICS)}")
    takes = parameters(_functions()[name])
    free = {each: needed for each, needed in takes.items() if each not in PROVIDED}
    check(f"captum:{name}", free, ("perturb_func",), settings)
    return partial(Captum, name, version("captum"), False, tuple(sorted(settings.items())))


def blank_square(images: Tensor) -> tuple[Tensor, Tensor]:
    """Blank a square of a quarter of the sides at a random place: what is gone, what is left.

    For a linear model, contributions summed over it are what it costs.
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


def _functions() -> dict[str, Callable[..., Tensor]]:
    import captum.metrics

    return {name: getattr(captum.metrics, name) for name in METRICS}


def _stable(value: Any) -> Any:
    """A setting as something with a stable hash."""
    if isinstance(value, dict):
        return {name: _stable(item) for name, item in sorted(value.items())}
    if isinstance(value, tuple | list):
        return [_stable(item) for item in value]
    if callable(value):  # two functions of one file have the same code
        return [of_code(value), getattr(value, "__qualname__", "")]
    return value
