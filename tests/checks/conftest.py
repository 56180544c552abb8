"""A lab to run checks of cases, protocols and models in."""

from dataclasses import replace

import pytest

from attrcheck.checks import check as checks
from attrcheck.contracts import Case, Settings
from attrcheck.engine.checking import run_check, subjects
from attrcheck.engine.lab import Lab


@pytest.fixture
def lab_of(tmp_path):
    """A function that makes a lab of some cases and methods, on a store of its own."""

    def make(*cases, methods=(), images=10):
        settings = Settings(
            profile="default",
            images=images,
            seed=0,
            methods=tuple(methods),
            store=tmp_path / "store",
            fresh=False,
            run="this-run",
            device="cpu",
            threads=1,
            memory=None,
        )
        return replace(Lab.of(settings), cases=tuple(map(Case.of, cases)))

    return make


@pytest.fixture
def verdict_of():
    """A function that runs a check of the only subject that a lab has for it."""

    def run(check, lab):
        registered = checks.get(check)
        (subject,) = subjects(registered, list(lab.cases), [], lab.settings.profile)
        return run_check(registered, subject, lab)

    return run
