import json

import pytest

from attrcheck.plugin.session import Session


def payload(item, kind="case", **more):
    return json.dumps({"id": item, "kind": kind, **more})


@pytest.fixture
def session(tiny):
    return Session()


def test_only_items_of_attrcheck_are_expected(session):
    session.expect(
        [
            "suites/test_cases.py::test_case[tiny-linear-morf]",
            "mine/test_x.py::TestClass::test_any[tiny-linear-lerf]",
            "suites/test_methods.py::test_method[contract-gradient]",
            "tests/test_x.py::test_plain",
            "tests/test_x.py::test_parameter[1]",
            "tests/test_x.py::test_parameter[a-b-c]",
            "tests/test_x.py::test_parameter[contract-nobody]",
            "tests/test_x.py::test_parameter[nothing-gradient]",
            "tests/test_x.py::test_parameter[contract]",
            "tests/test_x.py::test_parameter[]",
            "tests/[tiny-linear-morf]/test_x.py::test_in_an_odd_folder",
        ]
    )
    assert session.expected == {"tiny-linear-morf", "tiny-linear-lerf", "contract-gradient"}


# Lists, not parameters: these ids would make the run of this very file an incomplete one.
OURS = [
    "design_depth-suite",
    "contract-slope",
    "linear_ground_truth-sds",
    "tuning-tiny-linear",
    "dummy_floor-tiny-linear-morf",
    "dummy_floor-tiny-linear-morf-tiny-linear-lerf",
]
NOT_OURS = [
    "tuning-tiny-nobody",
    "tuning-nothing-linear",
    "dummy_floor-tiny-linear-nothing",
    "dummy_floor-tiny-linear-morf-slope",
    "dummy_floor-tiny-linear-morf-tiny-linear-nothing",
    "nothing-tiny-linear-morf",
    "nothing-suite",
    "seed",
]


def test_a_check_is_expected_with_whatever_it_ranges_over(session):
    session.expect([f"t.py::t[{item}]" for item in (*OURS, *NOT_OURS)])
    assert session.expected == set(OURS)


def test_what_was_expected_and_sent_nothing_is_missing(session):
    session.expect(["t.py::t[tiny-linear-morf]", "t.py::t[tiny-linear-lerf]"])
    session.expect(["t.py::t[tiny-linear-lerf]"])  # every worker tells the same
    assert session.missing == ["tiny-linear-lerf", "tiny-linear-morf"]
    session.take(payload("tiny-linear-lerf"))
    assert session.missing == ["tiny-linear-morf"]
    session.take(payload("tiny-linear-morf"))
    assert session.missing == []


def test_what_was_sent_comes_in_the_order_of_ids(session):
    for item, kind in [("b-b-b", "case"), ("a-a-a", "case"), ("a-a", "check"), ("c-c-c", "case")]:
        session.take(payload(item, kind))
    assert [sent["id"] for sent in session.of_kind("case")] == ["a-a-a", "b-b-b", "c-c-c"]
    assert [sent["id"] for sent in session.of_kind("check")] == ["a-a"]
    assert session.of_kind("nothing") == []


def test_an_item_that_runs_again_replaces_what_it_sent(session):
    session.take(payload("a-a-a", result=1))
    session.take(payload("a-a-a", result=2))
    assert [sent["result"] for sent in session.of_kind("case")] == [2]


def test_every_session_is_a_run_of_its_own():
    assert Session().run != Session().run


def test_an_item_that_went_well_and_sent_nothing_is_not_ours(session):
    mine, other = "suites/test_cases.py::test_case[tiny-linear-morf]", "x.py::test[contract-slope]"
    session.expect([mine, other])
    session.dismiss(other)
    assert session.missing == ["tiny-linear-morf"]
    session.take(payload("tiny-linear-morf"))
    session.dismiss(mine)
    assert session.expected == {"tiny-linear-morf"}
