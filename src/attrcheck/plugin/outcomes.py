"""What ends a test by being raised: nothing that code under test may decide."""

from __future__ import annotations

import sys

import pytest


def outcomes() -> tuple[type[BaseException], ...]:
    """What pytest takes for the outcome of a test, whoever raises it; xfail is a kind of fail."""
    unittest = sys.modules.get("unittest")
    skips = [unittest.SkipTest] if unittest is not None else []
    return (pytest.skip.Exception, pytest.fail.Exception, pytest.exit.Exception, *skips)
