"""Checks of methods and laws of protocols, for their own unit tests; in scikit-learn's manner.

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

Laws are tried on scenes that hypothesis invents, which must be installed; in a test of your own,
`@given(scenes())` does the same. Images there are 3x8x8 in float64, in which sums in another order
are as good as equal: a protocol with tensors of its own takes over the type of `batch.images`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from attrcheck.checks import check as checks
from attrcheck.contracts import Method, Protocol
from attrcheck.engine.checking import examine
from attrcheck.engine.pairs import Loader
from attrcheck.laws import protocols as laws
from attrcheck.laws.scenes import KINDS, Scene
from attrcheck.protocols import ProtocolSpec
from attrcheck.registry import RegistryError, select

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

EXAMPLES = 20
"""Scenes a law."""
LOADER = Loader("cpu")


def check_method(
    method: Method | Callable[..., Any],
    only: str = "",
    dataset: str = "digits",
    model: str = "resnet",
    images: int = 8,
) -> None:
    """Put a method, registered or not, to the checks that globs select: AssertionError if it fails.

    A check that cannot apply is passed over, and so is a failure that the method declares.
    """
    subject = method if isinstance(method, Method) else Method(_name(method), method)
    pair = LOADER.pair(dataset, model, images)
    for name in filter(_of_methods, checks.select(only)):
        result = examine(checks.get(name), subject, pair)
        assert result.status != "failed", f"{name} of {subject.name}: {result.reason}"


def parametrize_with_checks(
    *methods: Method | Callable[..., Any], **settings: Any
) -> pytest.MarkDecorator:
    """A test that takes `method_check` becomes one item a method and check."""
    return pytest.mark.parametrize(
        "method_check",
        [
            pytest.param(
                partial(check_method, method, name, **settings), id=f"{name}({_name(method)})"
            )
            for method in methods
            for name in filter(_of_methods, checks)
        ],
    )


def check_protocol(
    protocol: Protocol | ProtocolSpec, only: str = "", examples: int = EXAMPLES
) -> None:
    """Put a protocol to the laws that globs select: AssertionError, with the scene, if it fails.

    `only` takes names of laws without `law_`: "!resampling*" leaves one out.
    """
    subject = protocol.make() if isinstance(protocol, ProtocolSpec) else protocol
    bound = _laws(subject)
    chosen = select(bound, [part.strip() for part in only.split(",") if part.strip()])
    if not chosen:
        raise RegistryError(f"{only!r} selects no law of {_name(protocol)}: {', '.join(bound)}")
    for name in chosen:
        _try(bound[name], subject, examples)


def parametrize_with_laws(
    *protocols: Protocol | ProtocolSpec, **settings: Any
) -> pytest.MarkDecorator:
    """A test that takes `protocol_law` becomes one item a protocol and law."""
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


def scenes() -> SearchStrategy[Scene]:
    """Hypothesis' strategy for the small worlds that laws are tried in."""
    from hypothesis import strategies as st

    return st.builds(
        Scene,
        seed=st.integers(0, 2**16),
        count=st.integers(1, 5),
        maps=st.sampled_from(KINDS),
    )


def _try(law: laws.Law, protocol: Protocol, examples: int) -> None:
    """One law on many scenes; hypothesis looks for the simplest that breaks it."""
    from hypothesis import given, settings

    @settings(deadline=None, max_examples=examples, report_multiple_bugs=False)
    @given(scene=scenes())
    def obey(scene: Scene) -> None:
        law(protocol, scene)

    obey()


def _laws(protocol: Protocol | ProtocolSpec) -> dict[str, laws.Law]:
    """By the names that `only` takes."""
    subject = protocol.make() if isinstance(protocol, ProtocolSpec) else protocol
    return {law.__name__.removeprefix("law_"): law for law in laws.laws_of(subject)}


def _of_methods(check: str) -> bool:
    return checks.get(check).over == "methods"


def _name(subject: Any) -> str:
    if isinstance(subject, Method | ProtocolSpec):
        return subject.name
    return getattr(subject, "__name__", type(subject).__name__)
