"""What protocols that impute are compared with published figures by."""

from functools import partial

import pytest

import attrcheck
from attrcheck.removal import noisy_linear


@pytest.fixture(scope="package")
def exact_linear():
    """The name of a removal that imputes as the published code does: without noise, exactly."""
    name = "exact_linear"
    attrcheck.removal(name)(partial(noisy_linear, noise=0, tolerance=1e-6))
    yield name
    attrcheck.removal._entries.pop(name)
