"""What the scripts of the page work with: the document and its details, small and rounded.

Numbers have four digits: they are drawn, and `report.json` has them all. Cases hold lists with one
item per method, in the order of `methods`.
"""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from attrcheck.engine.pictures import IMAGES, path_of
from attrcheck.engine.results import Curve, Exhibit, MethodFacts
from attrcheck.report import cards, weighing
from attrcheck.report.details import MAPS, CaseDetails, Details
from attrcheck.report.text import for_terminal
from attrcheck.report.types import BoardEntry, CaseEntry, Document

Json: TypeAlias = Any
DIGITS = 4
DIGITS_OF_IMAGES = 3


def of(document: Document, details: Details) -> Json:
    """All that scripts need of a report."""
    methods = order(document)
    places = {name: place for place, name in enumerate(document.pairwise.methods)}
    wins = document.pairwise.probability
    seen = [places.get(name) for name in methods]
    weights = weighing.of_document(document)
    known = {card.method: _card(card) for card in cards.cards(document, "")}
    return plain(
        {
            "methods": [{**_method(document, name), "card": known[name]} for name in methods],
            "cases": [
                {"weight": weight, **_case(case, methods, details.cases.get(case.id))}
                for case, weight in zip(document.cases, weights, strict=True)
            ],
            "margins": document.separation.margins,
            "wins": [
                [None if a is None or b is None else _rounded(wins[a][b], 3) for b in seen]
                for a in seen
            ],
            "exhibits": [_exhibit(exhibit, methods) for exhibit in details.exhibits],
        }
    )


def order(document: Document) -> list[str]:
    """All methods: those of the board from its top, then those without a score."""
    ranked = [entry.method for entry in document.leaderboard]
    return [*ranked, *(name for name in document.settings.methods if name not in ranked)]


def packed(content: bytes) -> str:
    """Bytes in little room, as text that needs no escape anywhere."""
    return base64.b64encode(zlib.compress(content, 6)).decode()


def packed_json(value: Json) -> str:
    """JSON in little room."""
    return packed(json.dumps(value, separators=(",", ":"), allow_nan=False).encode())


def pixels(exhibit: Exhibit) -> str:
    """The images of an exhibit, then its maps, byte by byte."""
    return packed(exhibit.images.tobytes() + exhibit.maps.tobytes())


def plain(value: Json) -> Json:
    """JSON with foreign text made printable, as everywhere on the page."""
    if isinstance(value, str):
        return for_terminal(value)
    if isinstance(value, dict):
        return {for_terminal(str(name)): plain(item) for name, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def _method(document: Document, name: str) -> Json:
    facts = document.settings.facts.get(name, MethodFacts())
    entry: BoardEntry | None = next((e for e in document.leaderboard if e.method == name), None)
    return {
        "name": name,
        **{part: getattr(facts, part) for part in ("family", "own", "dummy")},
        "board": entry
        and [entry.rank, *(_rounded(value) for value in (entry.meta_rank, entry.low, entry.high))],
    }


def _card(card: cards.Card) -> Json:
    """Its sections: a title, and pairs of a name and a text."""
    return [
        [section.title, [[fact.name, fact.text] for fact in section.facts]]
        for section in card.sections
    ]


def _case(case: CaseEntry, methods: Sequence[str], details: CaseDetails | None) -> Json:
    scores = [case.scores[name] for name in methods]
    curves = [score.curve for score in scores]
    same = {tuple(curve.x) for curve in curves if curve}
    rows = [details.methods.index(name) for name in methods] if details else []
    return {
        **{name: getattr(case, name) for name in ("id", "dataset", "model", "protocol", "images")},
        "higher": case.higher_is_better,
        "accuracy": _rounded(case.accuracy),
        "settings": {**case.protocol_settings},
        "tuning": case.tuning,
        "score": [_rounded(score.score) for score in scores],
        "low": [_rounded(score.low) for score in scores],
        "high": [_rounded(score.high) for score in scores],
        "rank": [score.rank for score in scores],
        "beats": [score.beats_random for score in scores],
        "fingerprint": [score.fingerprint for score in scores],
        "notes": {
            str(place): [score.status.replace("_", " "), score.reason]
            for place, score in enumerate(scores)
            if score.status != "ok"
        },
        "x": _list(next(iter(same))) if len(same) == 1 else [_axis(curve, "x") for curve in curves],
        "y": [_axis(curve, "y") for curve in curves],
        "errors": _table(details.curve_errors[rows], 2) if details else [],
        "perImage": _table(details.image_scores[rows], DIGITS_OF_IMAGES) if details else [],
    }


def _exhibit(exhibit: Exhibit, methods: Sequence[str]) -> Json:
    count, height, width, channels = exhibit.images.shape
    texts = ("pair", "ids", "positions", "labels", "predictions")
    return {
        **{name: getattr(exhibit, name) for name in texts},
        "probabilities": _list(exhibit.probabilities, 3),
        "shape": [count, height, width, channels],
        "methods": [methods.index(name) for name in exhibit.methods],
        "scales": _table(exhibit.scales, DIGITS),
        "files": [
            f"{MAPS}/{path_of(exhibit.pair, name)}"
            for name in (*exhibit.methods, IMAGES)
            if exhibit.full
        ],
    }


def _axis(curve: Curve | None, name: str) -> Json:
    return _list(getattr(curve, name)) if curve else None


def _table(values: NDArray[Any], digits: int) -> Json:
    """Rows of numbers; a row in which nothing is known is None."""
    return [_list(row.tolist(), digits) if np.isfinite(row).any() else None for row in values]


def _list(values: Iterable[float | None], digits: int = DIGITS) -> list[float | None]:
    return [_rounded(value, digits) for value in values]


def _rounded(value: float | None, digits: int = DIGITS) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.{digits}g}")
    return int(short) if short.is_integer() and abs(short) < 1e15 else short
