"""`--attr-plan`: a table, exit code 0, and nothing run."""

import pytest

from tests.plugin.test_plugin import project, run  # noqa: F401

pytest_plugins = ["pytester"]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_plan_runs_nothing(project, workers):  # noqa: F811
    result = run(project, "--attr-plan", "--attr-report", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "plan: 4 cases, on *",
            "dataset-model * cases * methods * images * forward * backward * h:mm:ss *",
            "halves-linear * 2 * 2 * 30 *",
            "halves-steep * 2 * 2 * 30 *",
            "total * 4 * 2 * 30 *",
        ]
    )
    result.assert_outcomes()
    assert not (project.path / ".attrcheck").exists()
    assert not (project.path / "attr-report").exists()


def test_a_plan_is_of_what_is_selected(project):  # noqa: F811
    result = run(project, "--attr-plan", "-k", "steep and morf")
    result.stdout.fnmatch_lines(["plan: 1 cases, on *"])
    result.stdout.no_fnmatch_line("halves-linear *")
