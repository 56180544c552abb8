"""A protocol that cannot be trusted on a user's own data: shown and counted, no reason to fail."""

import json

import pytest

from tests.conftest import forgetting
from tests.plugin.test_plugin import PLAIN
from tests.worlds import TINY, method

pytest_plugins = ["pytester"]

CHECKS = """
def test_case(attr_case):
    attr_case.run()

def test_protocol(attr_protocol_check):
    attr_protocol_check.run()
"""
AGAINST = method("against", "return -exact(model, images, targets)")
"""Worse than noise, so that dummies beat it."""


@pytest.fixture
def project(pytester):
    """A project whose one method loses to every dummy."""
    pytester.makeconftest(TINY + AGAINST)
    pytester.makepyfile(test_suite=CHECKS)
    return pytester


RUN = (
    *PLAIN,
    "--attr-datasets=halves",
    "--attr-models=linear",
    "--attr-protocols=morf",
    "--attr-methods=against,random,intensity",
    "--attr-checks=dummy_floor",
    "--attr-threads=1",
)


def test_a_finding_is_shown_and_counted_and_the_run_is_green(project):
    with forgetting():
        result = project.runpytest_inprocess(*RUN, "-v", "--attr-report")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "*test_protocol?dummy_floor-halves-linear-morf? FINDING*",
            "1 finding(s) on protocols and your data, *only if a gate asks for it: "
            "dummy_floor of morf (1)",
            "*1 passed, 1 findings in*",
        ]
    )
    report = json.loads((project.path / "attr-report/report.json").read_text())
    assert [check["status"] for check in report["checks"]] == ["finding"]
    (trust,) = report["protocol_verdicts"]
    assert (trust["trust"], trust["checks"]["dummy_floor"]["decided"]) == (0.0, 1)
    text = (project.path / "attr-report/report.md").read_text()
    assert "1 finding(s) on protocols and your data" in text


@pytest.mark.slow
def test_a_gate_makes_it_fail_the_run_and_without_a_report_it_is_shown_too(project):
    result = project.runpytest_subprocess(*RUN, "-n2", "--attr-gate=morf.dummy_floor <= 0.1")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["1 finding(s) on protocols*", "*1 failed, 1 passed, 1 findings in*"]
    )
