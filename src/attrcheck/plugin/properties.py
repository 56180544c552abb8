"""Properties of an item for JUnit and its like: scores, ranks and reasons beside the outcome."""

from __future__ import annotations

import numpy as np

from attrcheck.engine.results import CaseResult, CheckResult, LawResult
from attrcheck.metarank import case_ranks
from attrcheck.report.text import for_terminal
from attrcheck.tallies import TOLERANCE

Properties = list[tuple[str, str]]


def of_case(result: CaseResult) -> Properties:
    """`score.NAME` and `rank.NAME` of each method that has a score, `reason.NAME` of others."""
    scores = np.array([outcome.score for outcome in result.outcomes.values()], dtype=float)
    ranks = case_ranks(scores, higher_is_better=result.higher_is_better, tolerance=TOLERANCE)
    properties = [("images", str(result.images)), ("accuracy", f"{result.accuracy:g}")]
    for (name, outcome), rank in zip(result.outcomes.items(), ranks, strict=True):
        if outcome.score is None:
            properties.append((f"reason.{name}", f"{outcome.status}: {outcome.reason}"))
        else:
            properties += [(f"score.{name}", repr(outcome.score)), (f"rank.{name}", f"{rank:g}")]
    return _plain(properties)


def of_check(result: CheckResult) -> Properties:
    """The status of a check, its reason, and its figures that are single numbers."""
    figures = [
        (f"figure.{name}", repr(value))
        for name, value in result.figures.items()
        if isinstance(value, int | float)
    ]
    reason = [("reason", result.reason)] if result.reason else []
    return _plain([("status", result.status), *reason, *figures])


def of_law(result: LawResult) -> Properties:
    """The status of a law, in how many scenes, and where it is broken."""
    facts = {"reason": result.reason, "scene": result.scene, "seed": result.seed}
    known = [(name, text) for name, text in facts.items() if text]
    return _plain([("status", result.status), ("examples", str(result.examples)), *known])


def _plain(properties: Properties) -> Properties:
    """As they may cross to the controller, and stand in XML."""
    return [(for_terminal(name), for_terminal(value)) for name, value in properties]
