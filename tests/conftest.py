"""Fixtures for all tests: registries that are left as found, and a tiny world to run cases in."""

import importlib
import os
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest
from torch import nn

import attrcheck
from tests.worlds import Tiny, brightness, gradient, tiny_dataset, tiny_network

if "PYTEST_XDIST_WORKER" in os.environ:
    # Coverage is measured here; to trace every process that a test starts would take far longer.
    for variable in [name for name in os.environ if name.startswith("COVERAGE_PROCESS")]:
        del os.environ[variable]

for library in ("captum.attr", "scipy.ndimage", "torch._dynamo"):
    # pytester forgets what a run in this process imports, and the next one would import it again.
    importlib.import_module(library)

REGISTRIES = (
    attrcheck.check,
    attrcheck.dataset,
    attrcheck.method,
    attrcheck.model,
    attrcheck.protocol,
    attrcheck.removal,
)


@pytest.fixture(autouse=True)
def caches(monkeypatch, tmp_path_factory):
    """Keep hashes of files out of the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "caches"))


@pytest.fixture(autouse=True)
def no_summary(monkeypatch):
    """Keep the runs that tests start off the page of the job that runs the tests."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


@contextmanager
def forgetting():
    """What is registered inside is forgotten afterwards."""
    with ExitStack() as stack:
        for registry in REGISTRIES:
            stack.enter_context(registry.scratch())
        yield REGISTRIES


@pytest.fixture
def registries():
    """Forget what a test registers."""
    with forgetting() as registries:
        yield registries


@pytest.fixture
def tiny(registries, tmp_path):
    """A world of its own: a dataset, a model, two methods, a store; see `Tiny`."""
    attrcheck.dataset("tiny")(tiny_dataset)
    attrcheck.model("linear", datasets="tiny*")(tiny_network)
    attrcheck.method("slope")(gradient)
    attrcheck.method("brightness")(brightness)
    return Tiny(tmp_path / "store")


@pytest.fixture
def passes(monkeypatch):
    """How many images each pass of a linear layer took, in order."""
    sizes = []
    forward = nn.Linear.forward

    def counted(self, inputs):
        sizes.append(len(inputs))
        return forward(self, inputs)

    monkeypatch.setattr(nn.Linear, "forward", counted)
    return sizes


@pytest.fixture
def same_arrays():
    """Whether two dictionaries hold the same arrays, bit for bit."""

    def same(left, right):
        return left.keys() == right.keys() and all(
            left[name].dtype == right[name].dtype
            and left[name].shape == right[name].shape
            and left[name].tobytes() == np.asarray(right[name]).tobytes()
            for name in left
        )

    return same
