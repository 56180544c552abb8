"""Gates cannot vanish: whatever keeps one from being decided turns the run red, and says so."""

import json
import re

import pytest

from attrcheck import metarank
from attrcheck.plugin import selection
from attrcheck.report import files, markdown, terminal
from attrcheck.report.html import page
from tests.conftest import forgetting
from tests.worlds import ITEMS, TINY, method

pytest_plugins = ["pytester"]
RUN = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "--attr-datasets=halves",
    "--attr-models=linear",
    "--attr-protocols=lerf,morf",
    "--attr-methods=exact,random,mine*",
    "--attr-threads=1",
)
GATE = "--attr-gate=exact.beats_random == all"


@pytest.fixture
def project(pytester):
    pytester.makeconftest(TINY + method("mine", "return images"))
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def run(project, *arguments):
    """In this process; what the conftest registers is forgotten afterwards."""
    with forgetting():
        return project.runpytest_inprocess(*RUN, *arguments)


def report(project):
    return json.loads((project.path / "attr-report" / "report.json").read_text())


OUTCOMES = {
    "skip": "pytest.skip('not here')",
    "importorskip": "pytest.importorskip('no_such_module')",
    "fail": "pytest.fail('not here')",
    "xfail": "pytest.xfail('not here')",
    "exit": "pytest.exit('not here', returncode=0)",
    "unittest": "import unittest; raise unittest.SkipTest('not here')",
}


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("where", ["a method", "a dataset"])
def test_code_under_test_decides_no_test(project, outcome, where):
    """Neither does it skip a case, nor end the run."""
    statement = f"import pytest; {OUTCOMES[outcome]}"
    text = TINY + method("mine", statement if where == "a method" else "return images")
    if where == "a dataset":
        text = text.replace(
            "    images = torch.rand(30", f"    {statement}\n    images = torch.rand(30"
        )
    project.makeconftest(text)
    result = run(project, GATE, "--attr-report")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    counts = re.findall(r"(\d+) (failed|repeated|skipped|xfailed)", result.outlines[-1])
    # Both cases; where nothing could be computed, also the gate, and the run is incomplete.
    assert sum(int(count) for count, _ in counts) >= (2 if where == "a method" else 4)
    assert {outcome for _, outcome in counts} <= {"failed", "repeated"}
    said = " ".join(result.outlines)
    assert "halves-linear-lerf: " in said
    if where == "a method":
        assert "mine fails in 2 cases (halves-linear-lerf, halves-linear-morf): " in said
    else:
        assert "no result from halves-linear-lerf, halves-linear-morf" in said


def test_code_that_registers_does_not_skip_the_suite(project, monkeypatch):
    """As `importorskip` would, at the top of a module that an entry point names."""

    def table(*arguments, **more):
        pytest.importorskip("no_such_module")

    monkeypatch.setattr(selection, "table", table)
    project.makepyfile(test_other="def test_other(): pass")
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*code that registers things raised Skipped: *no_such_module*"])


SKIPPED = {
    "in the test": """
        import pytest

        def test_case(attr_case):
            if attr_case.case.protocol == "morf":
                pytest.skip("not this one")
            attr_case.run()
        """,
    "by a mark": """
        import pytest

        def test_case(attr_case):
            attr_case.run()

        @pytest.mark.skip
        def test_more(attr_check):
            attr_check.run()
        """,
    "without a word": """
        def test_case(attr_case):
            if attr_case.case.protocol != "morf":
                attr_case.run()
        """,
    "all": """
        import pytest

        @pytest.mark.skip
        def test_case(attr_case):
            attr_case.run()
        """,
}
NAMED = {"by a mark": "contract-exact", "all": "halves-linear-lerf, halves-linear-morf"}


@pytest.mark.parametrize("how", SKIPPED)
@pytest.mark.parametrize("source", ["command line", "file"])
def test_a_gate_holds_for_all_that_was_collected_or_not_at_all(project, how, source):
    project.makepyfile(test_suite=SKIPPED[how])
    chosen = "--attr-checks=contract"
    assert run(project, chosen).ret == 0  # without a gate a user may skip what they like
    if source == "file":
        project.makeini("[pytest]\nattr_gate = exact.beats_random == all")
    result = run(project, chosen, *([GATE] if source == "command line" else []))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    name = NAMED.get(how, "halves-linear-morf")
    result.stdout.fnmatch_lines([f"*not decided on all that was collected: no result from {name}*"])


def test_what_is_deselected_is_not_asked_for(project):
    result = run(project, GATE, "-k", "morf")
    result.assert_outcomes(passed=2, deselected=1)


def test_a_gate_on_the_command_line_of_a_run_without_cases_is_broken(project):
    project.makepyfile(test_suite="def test_other(): pass")
    result = run(project, GATE)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*not decided: no item of attrcheck was collected"])


def test_gates_of_a_file_leave_other_tests_alone_but_say_that_they_were_not_decided(project):
    project.makepyfile(test_suite="def test_other(): pass")
    project.makeini("[pytest]\nattr_gate = exact.beats_random == all")
    result = run(project)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["gates not decided: no item of attrcheck was collected*ini*"])


@pytest.mark.parametrize("flag", ["--attr-store", "--attr-report-dir"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_given_apart_never_moves_the_root(project, tmp_path_factory, flag, exists):
    """pytest would take it for a path to test, and lose the ini file with its gates."""
    project.makeini("[pytest]\nattr_gate = random.rank == 1")
    folder = tmp_path_factory.mktemp("elsewhere") / "folder"
    if exists:
        folder.mkdir()
    result = run(project, flag, str(folder))
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{project.path}*tox.ini*write {flag}={folder}"])
    joined = run(project, f"{flag}={folder}")
    assert joined.ret == pytest.ExitCode.TESTS_FAILED
    joined.stdout.fnmatch_lines(["random.rank is *, wanted == 1"])


def test_a_folder_given_apart_that_moves_nothing_is_fine(project, tmp_path_factory):
    project.makeini("[pytest]\nattr_gate = random.rank == 1")
    folder = tmp_path_factory.mktemp("elsewhere")
    for arguments in (("--attr-store", "inside"), ("test_suite.py", "--attr-store", str(folder))):
        result = run(project, *arguments)
        assert result.ret == pytest.ExitCode.TESTS_FAILED
        result.stdout.fnmatch_lines(["random.rank is *, wanted == 1"])


def test_names_given_apart_are_no_paths_either(project):
    """A folder that is called like a method, with an ini file of its own."""
    project.makeini("[pytest]\nattr_gate = random.rank == 1")
    project.mkdir("exact").joinpath("pytest.ini").write_text("[pytest]\n")
    result = run(project, "--attr-methods", "exact")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*write --attr-methods=exact"])


RULE = "exact.rank == 1"


@pytest.mark.parametrize(
    ("arguments", "ini", "environment", "says"),
    [
        ((), "", "", "none"),
        ((f"--attr-gate={RULE}",), "", "", "command line"),
        (("--attr-gate", RULE), "", "", "command line"),
        ((), "", f"'--attr-gate={RULE}'", "command line"),
        ((), f"attr_gate = {RULE}", "", "{file}"),
        ((), f"addopts = '--attr-gate={RULE}'", "", "addopts in {file}"),
        (("-o", f"attr_gate={RULE}"), "attr_gate = random.rank == 1", "", "-o attr_gate"),
        (
            (f"--attr-gate={RULE}",),
            "attr_gate = random.rank == 1",
            "",
            "command line, instead of {file}",
        ),
    ],
)
def test_the_report_says_where_gates_come_from(
    project, monkeypatch, arguments, ini, environment, says
):
    file = project.makeini(f"[pytest]\n{ini}")
    monkeypatch.setenv("PYTEST_ADDOPTS", environment)
    result = run(project, "--attr-report", *arguments)
    assert result.ret == 0
    document = report(project)
    says = says.format(file=file)
    assert document["run"]["gates_from"] == says
    assert [gate["rule"] for gate in document["gates"]] == ([] if says == "none" else [RULE])
    result.stdout.fnmatch_lines([f"gates: {len(document['gates'])} in force, from: {says}"])


BREAKS = {
    "fusion": (metarank, "fuse", "conclusion"),
    "report.json": (files, "as_json", "report"),
    "report.md": (markdown, "render", "report"),
    "report.html": (page, "script", "report"),
    "board": (terminal, "render", "report"),
}


@pytest.mark.parametrize("part", BREAKS)
def test_an_error_at_the_end_swallows_no_gate(project, monkeypatch, part):
    assert run(project, "--attr-report").ret == 0
    path = project.path / "attr-report" / "report.json"
    before = path.stat().st_mtime_ns

    def out_of_luck(*arguments, **more):
        raise ValueError("out of luck")

    module, function, verdict = BREAKS[part]
    monkeypatch.setattr(module, function, out_of_luck)
    result = run(project, "--attr-report", "--attr-gate=random.rank == 1")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    failed = {line.split(" - ")[0] for line in result.outlines if line.startswith("FAILED")}
    assert failed == {f"FAILED attrcheck::{verdict}", "FAILED attrcheck::gate[random.rank == 1]"}
    said = result.stdout.str()
    assert "ValueError: out of luck" in said
    assert ("random.rank is 2, wanted == 1" in said) == (part != "fusion")
    kept = path.with_name("report.previous.json")
    assert path.exists() == (part not in ("fusion", "report.json"))
    assert kept.exists() != path.exists()
    if kept.exists():
        assert kept.stat().st_mtime_ns == before
    assert (f"{kept} is of an EARLIER run: this one wrote no report" in said) == kept.exists()
