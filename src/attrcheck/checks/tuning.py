"""A fine-tuned model must still be the model that it came from, and better at what it learnt."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from attrcheck.checks import check
from attrcheck.contracts import Lab, Rows, Tuning, Verdict
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols
from attrcheck.training.similarity import similarity

PEERS = ("resnet", "vgg")
"""Of another architecture, as published; where neither is, any other model of the run."""

FACTS = [(what, when) for what in ("accuracy", "worst_cell") for when in ("before", "after")]


@check("tuning", over="models")
def tuning(lab: Lab, dataset: str, model: str) -> Verdict:
    """Fine-tuning moves outputs and Grad-CAM less than another architecture would, and helps.

    What moved: the label's probability, the whole distribution (total variation) and Grad-CAM
    maps, where there are some. It helps if the accuracy without the worst cell did not fall.
    """
    tunings, peer = _tunings(lab, dataset, model), _peer(lab, dataset, model)
    if not tunings or peer is None:
        missing = "other model is there" if tunings else "protocol of the run fine-tunes it"
        return Verdict(None, {}, f"no {missing}")
    pair, other = (lab.pair(dataset, name, None) for name in (model, peer))

    def compare() -> Rows:
        between = similarity(pair.network, other.network, pair.images, pair.labels)
        # Nothing as NaN: arrays know no None.
        return {name: np.array(np.nan if far is None else far) for name, far in between.items()}

    between = lab.keep(f"tuning-{peer}", pair, compare, code=similarity, other=other)
    figures: dict[str, float] = {}
    reasons: list[str] = []
    for how in tunings:
        # On all images, like the facts on record.
        seen, wrong = _seen(lab.pair(dataset, model, None, how).tuned, peer, between)
        named = f"{how.key}: " if len(tunings) > 1 else ""
        figures |= {f"{named}{figure}": value for figure, value in seen.items()}
        reasons += [f"{named}{reason}" for reason in wrong]
    return Verdict(not reasons, figures, "; ".join(reasons))


def _seen(facts: Mapping[str, Any], peer: str, between: Rows) -> tuple[dict[str, float], list[str]]:
    """The figures of one fine-tuning, and what is wrong with it."""
    figures = {f"{what}_{when}": facts[what][when] for what, when in FACTS}
    reasons = []
    for name, moved in facts["similarity"].items():
        apart = float(between[name])
        if moved is not None and not math.isnan(apart):
            figures |= {f"{name}_moved": moved, f"{name}_to_{peer}": apart}
            if moved >= apart:
                reasons.append(f"{name} moved by {moved:.4f}, {peer} is {apart:.4f} away")
    before, after = (figures[f"worst_cell_{when}"] for when in ("before", "after"))
    if after < before:
        reasons.append(f"without the worst cell the accuracy fell from {before:.3f} to {after:.3f}")
    return figures, reasons


def _tunings(lab: Lab, dataset: str, model: str) -> list[Tuning]:
    """What the protocols of the run do to this model to fine-tune it."""
    cases = (case for case in lab.cases if (case.dataset, case.model) == (dataset, model))
    tunings = (protocols.get(case.protocol).make(lab.settings.profile).tuning for case in cases)
    return list(dict.fromkeys(filter(None, tunings)))


def _peer(lab: Lab, dataset: str, model: str) -> str | None:
    known = [name for name in PEERS if models.get(name).knows(dataset)]
    others = [case.model for case in lab.cases if case.dataset == dataset]
    return next((name for name in (*known, *others) if name != model), None)
