"""Time limits of others beside ours: what pytest-timeout does to an item, with the same means.

It is not installed here, so its two steps are taken by hand: an alarm, whose handler calls
`pytest.fail`, when an item has run for too long.
"""

import pytest

from tests.plugin.test_plugin import add, run
from tests.worlds import ITEMS, TINY

pytest_plugins = ["pytester"]

ALARM = """
import pytest

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    def expired(number, frame):
        pytest.fail("Timeout (>2.0s) from pytest-timeout.")
    signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, 2.0)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
"""
HANGS = "import time; time.sleep(30); return images"


@pytest.fixture
def project(pytester):
    pytester.makeconftest(TINY + ALARM)
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def test_an_item_that_runs_out_of_time_in_another_process_fails_and_is_missing(project):
    add(project, "mine", HANGS)
    result = run(project, "--attr-isolate=auto", "--attr-models=linear", "-k", "lerf")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["*Timeout (>2.0s) from pytest-timeout*", "*no result from halves-linear-lerf*"]
    )


def test_in_this_process_the_method_is_named_and_the_others_go_on(project):
    add(project, "mine", HANGS)
    chosen = ("--attr-isolate=off", "--attr-models=linear", "-k", "lerf", "--attr-report")
    result = run(project, *chosen)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*method 'mine' on halves-linear raised Failed*: Timeout*"])
    result.stdout.fnmatch_lines(["*exact*+*"])


def test_our_own_limit_names_the_method_and_the_others_go_on(project):
    add(project, "mine", HANGS)
    project.makeconftest((project.path / "conftest.py").read_text().replace("2.0)", "60.0)"))
    chosen = ("--attr-timeout=1", "--attr-isolate=auto", "--attr-models=linear", "-k", "lerf")
    result = run(project, *chosen, "--attr-report")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*method 'mine' on halves-linear did not answer within 1 s*"])
    result.stdout.fnmatch_lines(["*exact*"])
