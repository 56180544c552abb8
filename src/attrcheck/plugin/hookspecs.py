"""What a project or another plugin may implement, each with an example to paste."""

from __future__ import annotations

from types import ModuleType

import pytest


@pytest.hookspec(historic=True)
def pytest_attrcheck_register(attrcheck: ModuleType) -> None:
    """Register things of one's own; the same as using the decorators at import.

    Example::

        def pytest_attrcheck_register(attrcheck):
            @attrcheck.method("input_magnitude")
            def input_magnitude(model, images, targets):
                return images.abs()
    """
