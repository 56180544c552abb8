"""What is needed to compare protocols that impute with published figures."""

from functools import partial

import pytest

import attrcheck
from attrcheck.removal import noisy_linear


@pytest.fixture(scope="package")
def exact_linear():
    """The name of a removal that imputes as the published code does: without noise, exactly."""
    name = "exact_linear"
    with attrcheck.removal.scratch():
        attrcheck.removal(name)(partial(noisy_linear, noise=0, tolerance=1e-6))
        yield name
