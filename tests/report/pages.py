"""Reports with all parts, to try pages on: scores, curves, images and maps drawn by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import (
    CaseResult,
    CheckResult,
    Curve,
    Exhibit,
    MethodFacts,
    Outcome,
)
from attrcheck.gate import GateResult
from attrcheck.report.details import Details
from attrcheck.report.document import build
from attrcheck.report.types import Document
from tests.report.samples import RUN, check, settings

PROTOCOLS = 20
IMAGES, SHOWN, SIDE = 40, 6, 16
RESAMPLES = 20


def page(
    cases: int = 6, methods: int | Sequence[str] = 5, reason: str = "no gradient here"
) -> tuple[Document, Details]:
    """A report of so many cases; the first method is the user's own, the last one is `random`.

    The first method is the better the smaller its number; the second does not apply to the first
    case, and its reason is given.
    """
    names = _names(methods)
    rng = np.random.default_rng(0)
    results = [_result(number, names, rng, reason) for number in range(cases)]
    document = build(results, _checks(names, results, reason), _settings(names), [], RUN)
    exhibits = [_exhibit(pair, names, rng) for pair in sorted({_pair(r) for r in results})]
    gates = [
        GateResult("random.rank >= 2", True, False, ("random.rank is 5, wanted >= 2",)),
        GateResult(f"{names[0]}.wins >= 1", False, False, (reason,)),
    ]
    details = Details.of(RUN.started, results, exhibits)
    return replace(document, gates=gates), details


def _names(methods: int | Sequence[str]) -> list[str]:
    if isinstance(methods, int):
        return [*(f"method_{number}" for number in range(methods - 1)), "random"]
    return [*methods, "random"]


def _pair(result: CaseResult) -> str:
    return result.case.rpartition("-")[0]


def _settings(names: Sequence[str]):
    facts = {
        name: MethodFacts(
            family="dummy" if name == "random" else ("gradient", "cam")[number % 2],
            own=number == 0,
            dummy=name == "random",
            passes=[1, 1],
            reference="Somebody et al.",
        )
        for number, name in enumerate(names)
    }
    return settings(names, facts=facts)


def _result(number: int, names: Sequence[str], rng, reason: str) -> CaseResult:
    case = f"d{number // PROTOCOLS}-net-p{number % PROTOCOLS}"
    outcomes = {}
    for place, name in enumerate(names):
        if number == 0 and place == 1:
            outcomes[name] = Outcome("not_applicable", reason)
            continue
        level = 1 - place / len(names)
        images = (level + 0.3 * rng.standard_normal(IMAGES)).astype(np.float32)
        score = float(images.mean())
        x = [k / 10 for k in range(11)]
        outcomes[name] = Outcome(
            "ok",
            score=score,
            low=score - 0.1,
            high=score + 0.1,
            curve=Curve(x, [level * (1 - k) for k in x]),
            replicates=score + 0.05 * rng.standard_normal(RESAMPLES),
            seconds=0.001 * (place + 1),
            image_scores=images,
            curve_errors=np.full(11, 0.02, dtype=np.float32),
        )
    return condense(CaseResult(case, True, IMAGES, 0.9, outcomes, {"removal": "mean"}))


def _exhibit(pair: str, names: Sequence[str], rng) -> Exhibit:
    maps = rng.integers(-127, 128, (len(names), SHOWN, SIDE, SIDE)).astype(np.int8)
    maps[-1] = np.abs(maps[-1])
    return Exhibit(
        pair=pair,
        ids=[f"image {number}" for number in range(SHOWN)],
        positions=list(range(SHOWN)),
        labels=["cat"] * SHOWN,
        predictions=["cat"] * (SHOWN - 1) + ["dog"],
        probabilities=[0.9] * SHOWN,
        methods=list(names),
        images=rng.integers(0, 256, (SHOWN, SIDE, SIDE, 3)).astype(np.uint8),
        maps=maps,
        scales=rng.uniform(0.1, 1, (len(names), SHOWN)).astype(np.float32),
    )


def _checks(names: Sequence[str], results: Sequence[CaseResult], reason: str) -> list[CheckResult]:
    failed = check("randomisation", "methods", names[0], "failed", reason)
    passed = [check("dummy_floor", "cases", r.case, unreliability=0.1) for r in results]
    return [failed, *passed]
