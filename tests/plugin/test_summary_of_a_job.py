"""With GITHUB_STEP_SUMMARY set, the page of a job gets a summary."""

import pytest

from tests.plugin.test_plugin import add, project, run

pytest_plugins = ["pytester"]
__all__ = ["project"]


def test_every_run_adds_its_summary(project, monkeypatch, tmp_path):
    page = tmp_path / "summary.md"
    page.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    assert run(project, "--attr-gate=exact.rank == 1", "-k", "linear").ret == 0
    add(project, "mine", "raise ValueError('out of luck')")
    assert run(project, "--attr-report", "-k", "linear").ret == pytest.ExitCode.TESTS_FAILED
    before, *lines = page.read_text().splitlines()
    assert before == "before"
    first, second = [line for line in lines if line.startswith("###")]
    assert first == "### ✅ attrcheck: all 1 gates hold"
    assert second == "### ❌ attrcheck: no gates to keep, 1 method failed"
    assert "- mine fails in 2 cases (halves-linear-lerf, halves-linear-morf): method" in "\n".join(
        lines
    )


def test_a_page_that_cannot_be_written_is_one_line_and_no_failure(project, monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "summary.md"))
    result = run(project, "-k", "linear-morf")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["warning: no summary in *nowhere/summary.md: FileNotFoundError*"])


def test_a_run_without_items_of_ours_says_nothing(pytester, monkeypatch, tmp_path):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    pytester.makepyfile("def test_it(): pass")
    assert pytester.runpytest_inprocess().ret == 0
    assert not (tmp_path / "summary.md").exists()
