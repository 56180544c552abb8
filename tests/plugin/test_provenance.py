"""Where scores come from, as `report.json` tells it, and how many entries a run verified."""

import pytest

from tests.plugin.test_plugin import add, project, report, run

__all__ = ["project"]
pytest_plugins = ["pytester"]

REPORT = ("--attr-report", "--attr-models=linear")


def fingerprints(found):
    return {
        (case["id"], name): score.get("fingerprint", "")
        for case in found["cases"]
        for name, score in case["scores"].items()
    }


def test_a_report_says_what_came_from_the_store_and_when_it_was_computed(project):
    run(project, *REPORT)
    first = report(project)
    run(project, *REPORT)
    second = report(project)
    [computed], [stored] = first["run"]["provenance"], second["run"]["provenance"]
    assert (computed["stored"], stored["stored"]) == (False, True)
    assert stored["created"] == computed["created"]
    assert stored["versions"] == computed["versions"]
    scored = {(case, name) for case, names in stored["created"].items() for name in names}
    assert scored == fingerprints(second).keys()
    assert first["cases"] == second["cases"]
    assert "4, 4 of them from the store" in (project.path / "attr-report/report.md").read_text()


def test_another_method_shares_no_entry_with_what_was_there(project):
    run(project, *REPORT)
    before = fingerprints(report(project))
    add(project, "mine", "return images * 2")
    run(project, *REPORT)
    found = report(project)
    new, old = found["run"]["provenance"]
    assert (new["stored"], old["stored"]) == (False, True)
    assert {name for names in new["created"].values() for name in names} == {"mine"}
    after = fingerprints(found)
    assert len(set(after.values())) == len(after) == 6
    assert {where: after[where] for where in before} == before


def test_a_score_that_is_missing_has_no_fingerprint(project):
    add(project, "mine", "raise ValueError")
    run(project, *REPORT)
    found = report(project)
    assert {where for where, mark in fingerprints(found).items() if not mark} == {
        ("halves-linear-lerf", "mine"),
        ("halves-linear-morf", "mine"),
    }
    assert all("mine" not in names for names in found["run"]["provenance"][0]["created"].values())


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.slow)])
def test_a_run_says_how_many_entries_it_verified(project, workers):
    run(project, *REPORT)
    assert report(project)["run"].get("verified") is None
    result = run(project, *REPORT, "--attr-verify=1", workers)
    assert result.ret == pytest.ExitCode.OK
    verified = report(project)["run"]["verified"]
    assert verified >= 4  # the records at least
    result.stdout.fnmatch_lines([f"verified {verified} entries of the store"])
    result = run(project, *REPORT)
    assert "entries of the store" not in result.stdout.str()


def test_a_run_that_had_nothing_to_verify_says_so(project):
    result = run(project, *REPORT, "--attr-verify=1", "--attr-fresh")
    assert report(project)["run"]["verified"] is not None
    result.stdout.fnmatch_lines(["verified * entries of the store"])
