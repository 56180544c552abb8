"""Reasons as pytest shows and keeps them: one cause once, JUnit's properties, ids to paste back."""

import xml.etree.ElementTree as ET

import pytest

from attrcheck.engine.results import CaseResult, CheckResult, Outcome
from attrcheck.plugin import properties
from tests.plugin.test_plugin import add, project, run
from tests.worlds import ITEMS

pytest_plugins = ["pytester"]
__all__ = ["project"]

CHECKED = ITEMS + "\ndef test_method(attr_check):\n    attr_check.run()\n"
BROKEN_MODEL = """

@attrcheck.model("broken", datasets="halves")
def broken(dataset):
    from attrcheck.errors import ModelError
    raise ModelError("no such weights")
"""
FAILS = "raise ValueError('no <layer9> & \\x1b[31mno \\ud800')"


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.slow)])
def test_a_method_that_fails_for_one_cause_is_one_failure(project, workers):
    project.makepyfile(test_suite=CHECKED)
    add(project, "mine", FAILS)
    arguments = (workers, "--attr-checks=contract,randomisation", "--junitxml=junit.xml")
    result = run(project, *arguments, "-p", "no:randomly")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    assert text.count("FAILED test_suite.py") == 1
    result.stdout.fnmatch_lines(
        [
            "mine fails in 4 cases (*halves-linear-lerf, *) and 2 checks (contract, *",
            "*1 failed*, 5 repeated failures in *",
        ]
    )
    suite = ET.parse(project.path / "junit.xml").getroot()[0]
    assert suite.attrib["failures"] == "6"  # each item is red


def test_another_cause_is_another_failure(project):
    add(project, "mine", "raise ValueError(type(model[1].weight[0, 0].item() > 2))")
    add(project, "mine_too", "raise ValueError(model[1].weight.abs().max().item())")
    result = run(project)
    result.stdout.fnmatch_lines(["*2 failed, 2 repeated failures in *"])


def test_an_error_that_is_no_methods_is_told_once_too(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + BROKEN_MODEL)
    result = run(project, "--attr-models=broken")
    assert result.stdout.str().count("FAILED test_suite.py") == 1
    result.stdout.fnmatch_lines(["*, 1 repeated failures in *"])


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.slow)])
def test_junit_carries_scores_and_reasons(project, workers):
    project.makepyfile(test_suite=CHECKED)
    add(project, "mine", FAILS)
    run(project, workers, "--attr-checks=contract", "--junitxml=junit.xml")
    suite = ET.parse(project.path / "junit.xml").getroot()[0]
    told = {
        test.attrib["name"]: {
            one.attrib["name"]: one.attrib["value"] for one in test.iter("property")
        }
        for test in suite
    }
    case = told["test_case[halves-linear-lerf]"]
    assert case["rank.exact"] == "1"
    assert case["rank.random"] == "2"
    assert float(case["score.exact"]) > float(case["score.random"])
    assert case["images"] == "30"
    assert "no <layer9> & \\x1b[31mno \\ud800" in case["reason.mine"]
    assert told["test_method[contract-exact]"]["status"] == "passed"
    assert "no <layer9>" in told["test_method[contract-mine]"]["reason"]


def test_properties_of_results():
    outcomes = {
        "good": Outcome("ok", score=0.25),
        "bad": Outcome("ok", score=0.75),
        "none": Outcome("not_applicable", "no\x1bgradient"),
    }
    assert properties.of_case(CaseResult("a-x-p", False, 8, 0.875, outcomes)) == [
        ("images", "8"),
        ("accuracy", "0.875"),
        *(("score.good", "0.25"), ("rank.good", "1")),
        *(("score.bad", "0.75"), ("rank.bad", "2")),
        ("reason.none", r"not_applicable: no\x1bgradient"),
    ]
    figures = {"a\nb": 0.5, "many": [1, 2], "none": None}
    result = CheckResult("seed", "methods", "good", "passed", figures, on="a-x")
    assert properties.of_check(result) == [("status", "passed"), ("figure.a\nb", "0.5")]


def test_ids_of_the_installed_suites_can_be_pasted_back(project):
    result = run(
        project,
        *("--pyargs", "attrcheck.suites", "--collect-only", "-q"),
        *("--attr-checks=none", "--attr-laws=none"),
    )
    [first, *others] = [line for line in result.outlines if "::" in line]
    assert first == "attrcheck.suites.test_cases::test_case[halves-linear-lerf]"
    assert len(others) == 3
    result = run(project, "--pyargs", first, "-v")
    assert any(line.startswith(f"{first} PASSED") for line in result.outlines)
    result.assert_outcomes(passed=1)


def test_no_checks_at_all(project):
    project.makepyfile(test_suite=CHECKED)
    for none in ("--attr-checks=none", "--override-ini=attr_checks=none"):
        result = run(project, none)
        assert result.ret == 0
        result.assert_outcomes(passed=4, deselected=1)
    for rule in ("exact.checks == all", "morf.dummy_floor <= 1"):
        result = run(project, "--attr-checks=none", f"--attr-gate={rule}")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([f"*gate '{rule}' is decided by checks, and * none runs none"])
