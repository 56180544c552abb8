"""Foreign text from end to end: what a method raises reaches every format, and breaks none."""

import json
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from attrcheck.report import terminal
from attrcheck.report.files import FORMATS
from tests.plugin.test_plugin import add, project, report, run
from tests.worlds import ITEMS

__all__ = ["project"]
pytest_plugins = ["pytester"]

TEXT = (
    "\x1b[31mred\x1b]0;title\x07 nul\0 one\ntwo\rthree <script>alert(1)</script> | `code` "
    "[link](http://evil.example) ![image](http://evil.example/x.png) &lt; \ud800 \u202ert\u202c"
)
READ = MarkdownIt("commonmark").enable("table").render
CHECKS = """
def test_method(attr_check):
    attr_check.run()
"""


def unprintable(text):
    """Characters that no terminal should get; pytest itself ends lines and moves no cursor."""
    return {letter for letter in text if not letter.isprintable()} - {"\n"}


@pytest.fixture
def hostile(project):
    """One method that raises all sorts of text, and one that is not applicable because of it."""
    add(project, "mine", f"raise type({TEXT[:12]!r}, (ValueError,), {{}})({TEXT!r} * 3)")
    conftest = project.path / "conftest.py"
    source = conftest.read_text(encoding="utf-8").replace(
        'tuple(f"h{i}"', f'tuple(f"h{{i}}" + {TEXT!r}'
    )
    source += f"""
@attrcheck.method("mine_too", not_applicable=lambda network: {TEXT!r})
def mine_too(model, images, targets):
    return images
"""
    conftest.write_text(source, encoding="utf-8")
    project.makepyfile(test_suite=ITEMS + CHECKS)
    return project


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n1", marks=pytest.mark.slow)])
def test_text_of_others_reaches_every_format_and_breaks_none(hostile, workers):
    arguments = ("--attr-report", "--attr-checks=contract", "--attr-gate=exact.rank == 1")
    given = (*arguments, "--junitxml=junit.xml", "-rA", workers, "--attr-models=linear")
    result = run(hostile, *given)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    output = "\n".join([*result.outlines, *result.errlines])
    assert unprintable(output) == set()
    assert r"\x1b[31mred\x1b]0;title\x07 nul\x00 one" in output
    assert "gate[exact.rank == 1]" in output
    assert "INTERNALERROR" not in output

    found = report(hostile)
    reasons = {name: score.get("reason", "") for name, score in found["cases"][0]["scores"].items()}
    lone = TEXT.replace("\ud800", r"\ud800")
    assert reasons["mine_too"] == lone
    assert lone * 3 in reasons["mine"]
    assert [entry["method"] for entry in found["leaderboard"]] == ["exact", "random"]
    assert found["gates"][0]["passed"]
    assert not found["missing"]

    page = READ((hostile.path / "attr-report" / "report.md").read_text(encoding="utf-8"))
    assert "script&gt;alert(1)" in page
    assert not [tag for tag in ("<script", "<a ", "<img") if tag in page]
    html = (hostile.path / "attr-report" / "report.html").read_text(encoding="utf-8")
    assert "&lt;script&gt;alert(1)" in html
    assert "<script>alert" not in html

    cases = ElementTree.parse(hostile.path / "junit.xml").getroot().iter("testcase")
    parts = [part for case in cases for part in case]
    told = [part.attrib["message"] for part in parts if part.tag != "properties"]
    assert sum(r"\x1b[31mred" in message for message in told) >= 4


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n1", marks=pytest.mark.slow)])
def test_a_traceback_is_escaped_and_cut_too(project, workers):
    """A check that raises is a fault of its author's, told with a traceback."""
    with (project.path / "conftest.py").open("a") as file:
        file.write(f"""
@attrcheck.check("own")
def own(method, pair):
    raise type({TEXT[:12]!r}, (ValueError,), {{}})({TEXT!r} + "why " * 1_000_000)
""")
    project.makepyfile(test_suite=ITEMS + CHECKS)
    given = ("--attr-checks=own", "--junitxml=junit.xml", "--attr-models=linear", workers)
    result = run(project, *given, "--attr-gate=exact.rank == 1")
    output = "\n".join([*result.outlines, *result.errlines])
    assert "INTERNALERROR" not in output
    assert unprintable(output) == set()
    assert r"\x1b[31mred\x1b]0;title\x07 nul\x00 one" in output
    assert len(output) < 200_000
    assert result.parseoutcomes()["passed"] == 2  # the cases
    assert "gate[exact.rank == 1]" in output
    ElementTree.parse(project.path / "junit.xml")


WARNINGS = f"""import warnings
    warnings.warn({TEXT!r})
    warnings.warn(UserWarning(({TEXT!r},), "second"))
    warnings.warn("why " * 1_000_000)
    warnings.warn(type({TEXT[:12]!r}, (DeprecationWarning,), {{}})("of a class of its own"))
    warnings.warn("an ordinary one", FutureWarning)
    return images"""


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n1", marks=pytest.mark.slow)])
def test_warnings_are_escaped_and_cut_too(project, workers):
    add(project, "mine", WARNINGS)
    given = ("--attr-isolate=off", "--attr-models=linear", "--attr-gate=exact.rank == 1")
    result = run(project, *given, workers)
    result.assert_outcomes(passed=3, warnings=5)
    output = "\n".join([*result.outlines, *result.errlines])
    assert "INTERNALERROR" not in output
    assert unprintable(output) == set()
    assert len(output) < 20_000
    for line in (
        r"UserWarning: \x1b[31mred\x1b]0;title\x07 nul\x00 one",
        r"UserWarning: \x1b[31mred\x1b]0;: of a class of its own",
        "FutureWarning: an ordinary one",
        "more characters)",
    ):
        assert line in output


def test_megabytes_of_text_are_cut_and_say_so(project):
    add(project, "mine", "raise ValueError('why ' * 1_300_000)")
    result = run(project, "--attr-report", "--junitxml=junit.xml", "--attr-models=linear")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert sum(map(len, result.outlines)) < 50_000
    assert "more characters)" in result.stdout.str()
    sizes = {path.name: path.stat().st_size for path in project.path.glob("attr-report/*")}
    page = sizes.pop("report.html")
    assert sizes.keys() == {"report.json", "report.details.json", "report.md"}
    assert max(sizes.values()) < 100_000
    assert page < 200_000
    assert (project.path / "junit.xml").stat().st_size < 50_000
    [reason] = {case["scores"]["mine"]["reason"] for case in report(project)["cases"]}
    assert "more characters) (at " in reason  # and its line


def test_megabytes_of_text_in_a_check_are_stored_and_read_again(project):
    add(project, "mine", "raise ValueError('\\0' * 5_000_000)")
    project.makepyfile(test_suite=CHECKS)
    for _ in range(2):
        result = run(project, "--attr-report", "--attr-checks=contract", "--attr-models=linear")
        result.assert_outcomes(passed=2, failed=1)
        assert "StoreWarning" not in result.stdout.str()
        assert unprintable(result.stdout.str()) == set()


@pytest.mark.parametrize("broken", FORMATS)
def test_gates_are_decided_though_a_format_cannot_be_written(project, broken):
    (project.path / "attr-report" / broken).mkdir(parents=True)
    result = run(project, "--attr-report", "--attr-gate=exact.rank == 1", "-rA")
    result.assert_outcomes(passed=5, failed=1)
    result.stdout.fnmatch_lines(["PASSED *gate*exact.rank == 1*"])
    result.stdout.fnmatch_lines([f"*{broken} cannot be written to*"])
    written = {path.name for path in (project.path / "attr-report").iterdir() if path.is_file()}
    assert written == {*FORMATS} - {broken}


@pytest.mark.parametrize("module", ["markdown", "terminal"])
def test_gates_are_decided_though_a_format_cannot_be_made(project, monkeypatch, module):
    def fail(document, details=None):
        raise RuntimeError("\x1b[2J" + "x" * 5_000_000)

    if module == "markdown":
        monkeypatch.setitem(FORMATS, "report.md", fail)
    else:
        monkeypatch.setattr(terminal, "render", fail)
    result = run(project, "--attr-report", "--attr-gate=random.rank == 1")
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines([r"*cannot be *: RuntimeError: \x1b[[]2Jxxx*"])
    result.stdout.fnmatch_lines(["*random.rank is 2, wanted == 1*"])
    assert json.loads((project.path / "attr-report" / "report.json").read_text())["gates"]
