"""Whether a method applies to a model: asked once, then remembered, since it takes a network."""

from __future__ import annotations

from attrcheck.contracts import Method
from attrcheck.engine import keys
from attrcheck.engine.attribution import ALWAYS, not_applicable
from attrcheck.engine.pairs import Pair
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store


def refusal(method: Method, pair: Pair, store: Store) -> str | None:
    """Why a method cannot be right on the pair's model, from the store; None where it can."""
    if method.not_applicable is ALWAYS:
        return None

    def ask() -> Entry:
        return Entry({}, {"reason": not_applicable(method, pair)})

    key = keys.of_refusal(pair.key, method)
    reason: str | None = store.obtain(f"applies/{pair.name}/{method.name}", key, ask).info["reason"]
    return reason
