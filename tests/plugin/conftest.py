"""For runs inside this process, which pytester makes forget what they import."""

import pytest

from tests.conftest import REGISTRIES


@pytest.fixture(scope="session", autouse=True)
def _loaded():
    """Built-ins that a run imports would be registered, but no longer imported, in the next one."""
    for registry in REGISTRIES:
        for name in registry:
            registry.get(name)
