"""Checks of methods and laws of protocols, for their own unit tests, as scikit-learn does it.

from attrcheck.testing import check_method, check_protocol
from attrcheck.testing import parametrize_with_checks, parametrize_with_laws

def test_my_method():
    check_method(my_method)

@parametrize_with_checks(my_method, my_other_method)
def test_each(method_check):
    method_check()

def test_my_protocol():
    check_protocol(MyProtocol(grid=4))

@parametrize_with_laws(MyProtocol(), MyProtocol(grid=2))
def test_each_law(protocol_law):
    protocol_law()

Laws are tried on scenes that hypothesis invents; in a test of your own, `@given(scenes())` does the
same. Images there are 3x8x8 in float64, so that the order of a sum hardly matters: a protocol that
makes tensors gives them the type of `batch.images`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from attrcheck.checks import check as checks
from attrcheck.contracts import Method, Protocol
from attrcheck.engine.checking import examine
from attrcheck.engine.loading import Loader
from attrcheck.laws import protocols as laws
from attrcheck.laws.strategies import scenes
from attrcheck.laws.trying import Effort, attempt
from attrcheck.protocols import ProtocolSpec
from attrcheck.registry import RegistryError, select

__all__ = [
    "check_method",
    "check_protocol",
    "parametrize_with_checks",
    "parametrize_with_laws",
    "scenes",
]

EXAMPLES = 20
"""Scenes per law."""
LOADER = Loader("cpu")


def check_method(
    method: Method | Callable[..., Any],
    only: str = "",
    dataset: str = "digits",
    model: str = "resnet",
    images: int = 8,
) -> None:
    """Run the checks that globs select on a method, registered or not: AssertionError if one fails.

    A check that does not apply is skipped, and so is a failure that the method declares. Checks
    that no run asks by default are run if `only` selects them.
    """
    subject = method if isinstance(method, Method) else Method(_name(method), method)
    pair = LOADER.pair(dataset, model, images)
    for name in filter(_of_methods if only else _unasked, checks.select(only)):
        result = examine(checks.get(name), subject, pair)
        assert result.status != "failed", f"{name} of {subject.name}: {result.reason}"


def parametrize_with_checks(
    *methods: Method | Callable[..., Any], **settings: Any
) -> pytest.MarkDecorator:
    """A test that takes `method_check` becomes one item per method and check."""
    return pytest.mark.parametrize(
        "method_check",
        [
            pytest.param(
                partial(check_method, method, name, **settings), id=f"{name}({_name(method)})"
            )
            for method in methods
            for name in filter(_unasked, checks)
        ],
    )


def check_protocol(
    protocol: Protocol | ProtocolSpec, only: str = "", examples: int = EXAMPLES
) -> None:
    """Try the laws that globs select on a protocol: AssertionError, with the scene, if one fails.

    `only` takes names of laws without `law_`: "!resampling*" leaves one out.
    """
    subject = protocol.make() if isinstance(protocol, ProtocolSpec) else protocol
    bound = _laws(subject)
    chosen = select(bound, [part.strip() for part in only.split(",") if part.strip()])
    if not chosen:
        raise RegistryError(f"{only!r} selects no law of {_name(protocol)}: {', '.join(bound)}")
    for name in chosen:
        attempt(partial(bound[name], subject), scenes(), Effort(examples))


def parametrize_with_laws(
    *protocols: Protocol | ProtocolSpec, **settings: Any
) -> pytest.MarkDecorator:
    """A test that takes `protocol_law` becomes one item per protocol and law."""
    return pytest.mark.parametrize(
        "protocol_law",
        [
            pytest.param(
                partial(check_protocol, protocol, name, **settings), id=f"{name}({_name(protocol)})"
            )
            for protocol in protocols
            for name in _laws(protocol)
        ],
    )


def _laws(protocol: Protocol | ProtocolSpec) -> dict[str, laws.Law]:
    """By the names that `only` takes."""
    subject = protocol.make() if isinstance(protocol, ProtocolSpec) else protocol
    return {law.__name__.removeprefix("law_"): law for law in laws.laws_of(subject)}


def _of_methods(check: str) -> bool:
    return checks.get(check).over == "methods"


def _unasked(check: str) -> bool:
    return _of_methods(check) and checks.get(check).default


def _name(subject: Any) -> str:
    if isinstance(subject, Method | ProtocolSpec):
        return subject.name
    return getattr(subject, "__name__", type(subject).__name__)
