"""The accuracy of every pair is printed before anything is attributed; chance stops a case."""

import json

import pytest

from attrcheck.plugin import notes
from tests.conftest import forgetting
from tests.worlds import ITEMS, TINY, method

pytest_plugins = ["pytester"]

RUN = (
    *("-p", "no:cacheprovider", "-p", "no:randomly", "--attr-isolate=off", "--attr-threads=1"),
    *("--attr-datasets=halves", "--attr-protocols=lerf,morf", "--attr-methods=exact,random"),
)
UPSIDE_DOWN = """
@attrcheck.model("upside_down", datasets="halves")
def upside_down(dataset):
    "Its classes are in another order than the dataset's."
    network = linear(dataset)
    network[1].weight.data = network[1].weight.data.flip(0)
    return network
"""
LINES = [f"halves-{model}: accuracy 100.0% of 30 images" for model in ("linear", "steep")]


@pytest.fixture
def project(pytester):
    pytester.makeconftest(TINY + UPSIDE_DOWN + method("mine", "os._exit(3)"))
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def run(project, *arguments):
    """In this process; what the conftest registers is forgotten afterwards."""
    with forgetting():
        return project.runpytest_inprocess(*RUN, *arguments)


def test_the_accuracy_of_a_pair_is_printed_once(project):
    result = run(project, "--attr-models=linear,steep")
    result.assert_outcomes(passed=4)
    assert [result.outlines.count(line) for line in LINES] == [1, 1]


@pytest.mark.slow
def test_workers_leave_it_to_the_controller(project):
    result = project.runpytest_subprocess(*RUN, "-n", "2", "--attr-models=linear,steep")
    result.assert_outcomes(passed=4)
    assert [result.outlines.count(line) for line in LINES] == [1, 1]


def test_it_is_printed_before_anything_is_attributed(project):
    arguments = (*RUN[:-1], "--attr-methods=mine", "--attr-models=linear")
    result = project.runpytest_subprocess(*arguments)
    assert result.ret == 3
    assert result.outlines.count(LINES[0]) == 1


def test_those_who_want_it_quiet_see_none(project):
    result = run(project, "-q", "--attr-models=linear")
    assert not any("accuracy" in line for line in result.outlines)


def test_a_model_that_is_no_better_than_chance_stops_its_cases(project):
    result = run(project, "--attr-models=upside_down,linear")
    # Two cases for one cause, and the run is not complete.
    assert result.parseoutcomes() == {"passed": 2, "failed": 2, "repeated": 1}
    result.stdout.fnmatch_lines(
        ["halves-upside_down-lerf: accuracy 0.0% of 30 images is near chance (50.0%): likely *"]
    )
    told = [line for line in result.outlines if "likely causes" in line]
    assert sum(not line.startswith("FAILED") for line in told) == 1  # once for both cases


def test_it_runs_if_that_is_accepted_and_the_board_says_so(project):
    accepted = ("--attr-models=upside_down", "--attr-accept-accuracy", "--attr-report")
    result = run(project, *accepted)
    result.assert_outcomes(passed=2)
    remark = "accuracy 0.0% of 30 images is near chance (50.0%)"
    caution = f"CAUTION: halves-upside_down: {remark}"
    result.stdout.fnmatch_lines(["accuracy: halves-upside_down 0.0%", caution])
    folder = project.path / "attr-report"
    report = json.loads((folder / "report.json").read_text())
    assert [case["caveats"] for case in report["cases"]] == [[remark], [remark]]
    assert f"- {caution}" in (folder / "report.md").read_text().splitlines()


def test_the_first_note_about_a_thing_is_kept(tmp_path):
    folder = str(tmp_path / "run")
    notes.leave(folder, "a-x", "first")
    notes.leave(folder, "a-x", "second")
    notes.leave(folder, "a-y", "third")
    texts = sorted(path.read_text() for path in (tmp_path / "run").iterdir())
    assert texts == ["first", "third"]
