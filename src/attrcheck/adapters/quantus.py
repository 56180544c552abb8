"""Any metric of Quantus as a protocol: `quantus:PixelFlipping`, or with settings of your own."""

from __future__ import annotations

import importlib
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

import attrcheck.adapters.vision  # noqa: F401  # Quantus imports torchvision
from attrcheck.adapters.libraries import check, choose, parameters, version_of
from attrcheck.adapters.metrics import Metric, Trial
from attrcheck.contracts import Need
from attrcheck.errors import AttrcheckError
from attrcheck.protocols import ProtocolSpec
from attrcheck.registry import RegistryError

PROVIDED = (
    *("self", "model", "x_batch", "y_batch", "a_batch", "s_batch", "custom_batch"),
    *("channel_first", "device", "explain_func", "explain_func_kwargs"),
)
QUIET = {"disable_warnings": True, "display_progressbar": False}

ACROSS = "compares images with each other, so it cannot score one alone"
OTHER_MODEL = "explains a changed model, but a protocol can ask for maps of changed images only"
RANDOM_MODEL = f"{OTHER_MODEL}; the check `randomisation` does this"
REFUSED = {
    "Consistency": ACROSS,
    "Sufficiency": ACROSS,
    "SensitivityN": ACROSS,
    "MPRT": RANDOM_MODEL,
    "SmoothMPRT": RANDOM_MODEL,
    "EfficientMPRT": RANDOM_MODEL,
    "InputInvariance": OTHER_MODEL,
    "RandomLogit": "explains another class; the check `target_sensitivity` does this",
    "Focus": "needs mosaics of images",
}


@dataclass(frozen=True)
class Quantus(Metric):
    """A metric of Quantus, called with one image; a curve becomes the area that it defines."""

    library = "quantus"

    def score(self, model: nn.Module, trial: Trial) -> float:
        """What Quantus gives for the image; NaN without a mask, or with a map that it refuses."""
        chosen, given = _metrics()[self.metric], {**QUIET, **dict(self.settings)}
        call, maps = parameters(chosen.__call__), trial.map[:, None]
        if self.metric in BY_PIXEL and trial.image.shape[1] > 1:
            given = {"perturb_func": BY_PIXEL[self.metric], **given}
            maps = maps.expand_as(trial.image)
        offers: dict[str, Any] = {
            "model": model.eval(),  # Quantus looks at the flag of the outermost module
            "x_batch": _array(trial.image),
            "y_batch": _array(trial.label),
            "a_batch": _array(maps),
            "explain_func": partial(self._explain, model, trial),
            "channel_first": True,
            "device": str(trial.image.device),
        }
        if "masks" in self.needs:
            if trial.mask is None:
                raise AttrcheckError(f"{self.name} needs masks, which the dataset does not have")
            if not trial.mask.any():
                return float("nan")
            offers["s_batch"] = _array(trial.mask[:, None].bool())
        build = {name: value for name, value in given.items() if name not in call}
        offers |= {name: value for name, value in given.items() if name in call}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            metric = chosen(**build)
            try:
                result = metric(**{name: offers[name] for name in call if name in offers})
            except AssertionError as error:
                if traceback.extract_tb(error.__traceback__)[-1].name != "assert_attributions":
                    raise
                return float("nan")  # a map that is constant or nowhere above zero
            return self._single(metric, result)

    def _single(self, metric: Any, result: Any) -> float:
        """One number from what a metric returns for one image."""
        by_name = isinstance(result, Mapping)  # ROAD: right or wrong, by percentage
        try:
            numbers = np.asarray(list(result.values()) if by_name else result, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.empty((0, 0))
        if numbers.size == 1 or (by_name and numbers.ndim == 1):
            return float(numbers.mean())
        if hasattr(type(metric), "get_auc_score"):
            return float(metric.get_auc_score)
        raise AttrcheckError(
            f"{self.name} gives no single number for an image; register it with the setting "
            "return_aggregate=True, and an aggregate_func if it should not be the mean"
        )

    def _explain(
        self, known: nn.Module, trial: Trial, model: nn.Module, inputs: Any, targets: Any, **_: Any
    ) -> NDArray[np.float32]:
        """The method that is scored in the form of an explain_func, [K, 1, H, W]."""
        if model is not known or not np.all(np.asarray(targets) == int(trial.label)):
            raise AttrcheckError(
                f"{self.name} explains another model or class, but a protocol can ask for maps "
                "of changed images only"
            )
        images = torch.as_tensor(np.asarray(inputs)).to(trial.image)
        return _array(trial.explain(images)[:, None])


def resolve(name: str) -> ProtocolSpec:
    """The protocol `quantus:NAME`."""
    return ProtocolSpec(f"quantus:{name}", quantus_protocol(name))


def quantus_protocol(name: str, **settings: Any) -> Callable[[], Quantus]:
    """A protocol from a metric of Quantus: `protocol("flips")(quantus_protocol("PixelFlipping"))`.

    Settings go to the metric's class.
    """
    chosen = choose("Quantus", "metric", _metrics(), name)
    if name in REFUSED:
        raise RegistryError(f"quantus:{name} {REFUSED[name]}")
    takes = {**parameters(chosen), **parameters(chosen.__call__)}
    free = {key: needed for key, needed in takes.items() if key not in PROVIDED}
    check(f"quantus:{name}", free, (), settings)
    category = getattr(chosen, "evaluation_category", None)
    needs: tuple[Need, ...] = ("masks",) if _word(category) == "localisation" else ()
    return partial(
        Quantus,
        name,
        version_of("quantus"),
        _higher_is_better(name, chosen, settings),
        tuple(sorted(settings.items())),
        needs,
    )


def _higher_is_better(name: str, metric: type, settings: Mapping[str, Any]) -> bool:
    direction = _word(getattr(metric, "score_direction", None))
    if direction not in ("higher", "lower"):
        raise RegistryError(
            f"quantus:{name} does not say whether higher or lower is better, so it cannot rank"
        )
    if name == "RegionPerturbation":
        # Quantus declares lower, but its scores are drops: the larger the better, unless the least
        # relevant pixels go first.
        return bool(settings.get("order", "morf") != "lerf")
    return direction == "higher"


def library() -> ModuleType:
    """Quantus, mended where numpy has moved on."""
    try:
        quantus = importlib.import_module("quantus")
    except ModuleNotFoundError as error:
        if error.name != "quantus":
            raise
        raise RegistryError(
            'quantus: needs Quantus, which is not installed; run `pip install "attrcheck[quantus]"`'
        ) from error
    if not hasattr(np, "trapz"):
        # numpy 2.4 has dropped the function that Quantus 0.6 still calls for its areas.
        importlib.import_module("quantus.helpers.utils").calculate_auc = _area  # type: ignore[attr-defined]
    return quantus


def _area(values: Any, dx: int = 1, batched: bool = False) -> Any:
    """Trapezoids, along the second axis if there are several curves."""
    return np.trapezoid(np.asarray(values), dx=dx, axis=1 if batched else -1)


def _impute(arr: NDArray[Any], indices: NDArray[Any], **settings: Any) -> Any:
    """Impute the pixels that the indices of single values belong to, each counted once."""
    pixels, first = np.unique(indices % arr[0].size, return_index=True)
    chosen = pixels[np.argsort(first)][: len(indices) // len(arr)]
    return library().noisy_linear_imputation(arr, chosen, **settings)


def _replace(arr: NDArray[Any], mask: NDArray[Any], **settings: Any) -> Any:
    """Replace what a mask without channels covers."""
    mask = np.broadcast_to(mask, arr.shape)
    return library().baseline_replacement_by_mask(arr, mask, **settings)


BY_PIXEL: dict[str, Callable[..., Any]] = {"ROAD": _impute, "IROF": _replace}
"""Metrics that remove whole pixels, which Quantus 0.6 fails to do with several channels."""


def _metrics() -> dict[str, Any]:
    groups = library().AVAILABLE_METRICS.values()
    return {metric.__name__: metric for group in groups for metric in group.values()}


def _word(member: Any) -> str:
    """The value of an enumeration, or a plain string, in lower case."""
    return str(getattr(member, "value", member)).lower()


def _array(tensor: Tensor) -> NDArray[Any]:
    """A copy, whatever the library does to it."""
    return tensor.detach().cpu().numpy().copy()
