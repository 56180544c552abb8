"""What is known of methods without running them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable

from attrcheck.contracts import Method
from attrcheck.engine.finding import find
from attrcheck.engine.results import MethodFacts
from attrcheck.errors import AttrcheckError, cut
from attrcheck.methods import method as registered
from attrcheck.registry import summary


def facts(names: Iterable[str]) -> dict[str, MethodFacts]:
    """Those of methods by name; one that cannot be loaded has none."""
    known = {}
    for name in names:
        try:
            known[name] = facts_of(find(name))
        except AttrcheckError:
            continue
    return known


def facts_of(method: Method) -> MethodFacts:
    """Those of one method."""
    return MethodFacts(
        family=cut(str(method.family), 100),
        own=registered.is_own(method.name),
        dummy=bool(method.dummy),
        passes=[int(count) for count in method.passes],
        reference=cut(str(method.reference), 300),
        definition=cut(summary(method), 300),
        axioms={cut(str(name), 100): float(error) for name, error in method.axioms.items()},
        seeded=_asks_for_seeds(method),
    )


def _asks_for_seeds(method: Method) -> bool:
    try:
        return "seeds" in inspect.signature(method.attribute).parameters
    except (TypeError, ValueError):  # what is not written in Python may have no signature
        return False
