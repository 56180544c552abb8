"""Run one case: attribute, observe, reduce and record, method by method."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, is_dataclass
from typing import Any

import torch

from attrcheck.bench import Bench
from attrcheck.cases import Case
from attrcheck.protocols import Protocol
from attrcheck.results import CaseResult
from attrcheck.settings import Settings
from attrcheck.store import Store

Progress = Callable[[str], None]
PLAIN = (bool, int, float, str, type(None))


class FewImages(UserWarning):
    """A protocol that wants more images than it got: its scores hang on a few of them."""


def run_case(case: Case, settings: Settings, store: Store, progress: Progress) -> CaseResult:
    """Judge every method of a case."""
    torch.set_num_threads(settings.threads)
    store.open()
    bench = Bench(case, settings, store)
    _warn(bench)
    accuracy = float(bench.intact["correct"][: bench.images].mean())
    found = bench.observe_all(progress)
    judge = bench.settle(found)
    return CaseResult(
        case=case.id,
        higher_is_better=bench.protocol.higher_is_better,
        images=bench.images,
        accuracy=accuracy,
        outcomes=bench.score(judge, found),
        protocol=_settings(judge),
        tuning=bench.setup.facts,
        problems=list(store.problems),
    )


def _warn(bench: Bench) -> None:
    """Say so if there are fewer images than the protocol needs."""
    if bench.images < bench.protocol.least_images:
        warnings.warn(
            f"{bench.case.protocol} wants at least {bench.protocol.least_images} images and has "
            f"{bench.images}: its scores hang on single ones",
            FewImages,
            stacklevel=3,
        )


def _settings(protocol: Protocol) -> dict[str, Any]:
    """The protocol's settings, as JSON can hold them."""
    fields: dict[str, Any] = asdict(protocol) if is_dataclass(protocol) else {}
    return {
        name: value if isinstance(value, PLAIN) else str(value)
        for name, value in sorted(fields.items())
    }
