import pytest

from attrcheck.engine.results import CaseResult, CheckResult, Envelope, RunSettings
from attrcheck.engine.wire import dumps
from attrcheck.plugin.session import Session

SETTINGS = RunSettings("smoke", 8, 0, "cpu", [], of_cases=0, of_methods=0)


def case(item, images=8, **keys):
    result = CaseResult(item, True, images, 1.0, {})
    return dumps(Envelope(item, SETTINGS, "", threads=1, case=result, keys=keys))


def check(item):
    name, _, subject = item.partition("-")
    result = CheckResult(name, "methods", subject, "passed", {}, on="a-x")
    return dumps(Envelope(item, SETTINGS, "", threads=1, check=result))


@pytest.fixture
def session():
    return Session()


def test_what_was_expected_and_sent_nothing_is_missing(session):
    session.expect({"t.py::t[a-x-morf]": "a-x-morf", "t.py::t[a-x-lerf]": "a-x-lerf"})
    session.expect({"t.py::t[a-x-lerf]": "a-x-lerf"})  # every worker tells the same
    assert session.missing == ["a-x-lerf", "a-x-morf"]
    session.take(case("a-x-lerf"))
    assert session.missing == ["a-x-morf"]
    session.take(case("a-x-morf"))
    assert session.missing == []


def test_an_item_that_was_skipped_is_not_missing(session):
    session.expect({"t.py::t[a-x-morf]": "a-x-morf"})
    session.excuse("t.py::t[another]")
    assert session.missing == ["a-x-morf"]
    session.excuse("t.py::t[a-x-morf]")
    assert session.missing == []
    assert session.skipped == ["a-x-morf"]
    assert session.used


def test_one_of_two_tests_of_a_case_may_be_skipped(session):
    session.expect({"t.py::t[a-x-morf]": "a-x-morf", "t.py::u[a-x-morf]": "a-x-morf"})
    session.excuse("t.py::u[a-x-morf]")
    assert session.missing == ["a-x-morf"]
    assert session.skipped == []
    session.take(case("a-x-morf"))
    assert session.missing == session.skipped == []


def test_results_come_in_the_order_of_ids(session):
    for text in (case("b-b-b"), case("a-a-a"), check("contract-b"), case("c-c-c")):
        session.take(text)
    assert [result.case for result in session.cases] == ["a-a-a", "b-b-b", "c-c-c"]
    assert [result.subject for result in session.checks] == ["b"]


def test_an_item_that_runs_again_replaces_what_it_sent(session):
    session.take(case("a-a-a", images=1))
    session.take(case("a-a-a", images=2))
    assert [result.images for result in session.cases] == [2]


def test_a_result_that_nobody_announced_counts(session):
    """As from a worker on another machine, whose temporary files are out of reach."""
    assert not session.used
    session.take(case("a-a-a"))
    assert session.used
    assert session.missing == []


def test_every_session_is_a_run_of_its_own():
    assert Session().run != Session().run


def test_a_method_with_another_key_in_another_process_is_unsteady(session):
    session.take(case("a-a-a", mine="1", other="2"))
    session.take(case("b-b-b", mine="1", other="2"))
    assert session.unsteady == []
    session.take(case("c-c-c", mine="3", other="2"))
    assert session.unsteady == ["mine"]
