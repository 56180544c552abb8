"""The checks of the suites, for a method's own unit tests; in the manner of scikit-learn's.

from attrcheck.testing import check_method, parametrize_with_checks

def test_my_method():
    check_method(my_method)

@parametrize_with_checks(my_method, my_other_method)
def test_each(method_check):
    method_check()
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from attrcheck.checking import examine
from attrcheck.checks import check as checks
from attrcheck.loading import load
from attrcheck.methods import Method


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
    setup = load(dataset, model, images, "cpu")
    for name in checks.select(only):
        result = examine(checks.get(name), subject, setup)
        assert result["status"] != "failed", f"{name} of {subject.name}: {result['reason']}"


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
            for name in checks
        ],
    )


def _name(method: Method | Callable[..., Any]) -> str:
    return method.name if isinstance(method, Method) else getattr(method, "__name__", "method")
