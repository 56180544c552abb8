"""Real xdist runs in processes of their own: equal results, a killed worker, a resumed run."""

import json
import os

import pytest

from tests.plugin.test_plugin import run
from tests.worlds import ITEMS, TINY, method

pytest_plugins = ["pytester"]

RUN = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "--attr-datasets=halves",
    "--attr-protocols=lerf,morf",
    "--attr-methods=exact,random,mine*",
    "--attr-threads=1",
    "--attr-report",
)
TOGETHER = ("--attr-isolate=off",)
# Fails or dies once, in one case only: the flag file remembers.
SUICIDE = """
    if images.shape[0] and float(next(model.parameters()).abs().max()) > 5:
        try:
            open({flag!r}, "x").close()
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return images
"""


@pytest.fixture
def project(pytester):
    pytester.makeconftest(TINY + method("mine", "return images"))
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def report(project, folder="attr-report"):
    document = json.loads((project.path / folder / "report.json").read_text())
    document.pop("run")
    return json.dumps(document)


def test_two_workers_write_the_very_report_of_one_process(project, monkeypatch):
    temporary = project.mkdir("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    alone = run(project, "--attr-report", "--attr-store=a", "--attr-report-dir=alone")
    alone.assert_outcomes(passed=4)
    spread = project.runpytest_subprocess(
        *RUN, "--attr-store=b", "--attr-report-dir=spread", "-n2", "--dist=worksteal"
    )
    spread.assert_outcomes(passed=4)
    assert report(project, "spread") == report(project, "alone")
    assert not list(temporary.glob("attrcheck-*"))  # what workers told is gone


def test_a_killed_worker_is_named_the_run_is_incomplete_and_can_be_resumed(project):
    flag = str(project.path / "died")
    project.makeconftest(TINY + method("mine", SUICIDE.format(flag=flag).strip()))
    hurt = project.runpytest_subprocess(*RUN, *TOGETHER, "-n2", "--dist=worksteal")
    assert hurt.ret == pytest.ExitCode.TESTS_FAILED
    hurt.stdout.fnmatch_lines(
        [
            "*worker 'gw?' crashed while running *test_case?halves-steep-*",
            "*no result from halves-steep-*",
            "*run again to complete it*",
            "*INCOMPLETE: no result from 1 item*halves-steep-*",
        ]
    )
    store = project.path / ".attrcheck"
    kept = {path: path.stat().st_mtime_ns for path in store.rglob("*.safetensors")}
    assert len([path for path in kept if "exact-" in path.name]) >= 3
    healed = run(project, "--attr-report")
    healed.assert_outcomes(passed=4)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept  # nothing was done twice
    fresh = run(project, "--attr-report", "--attr-fresh", "--attr-report-dir=fresh")
    fresh.assert_outcomes(passed=4)
    assert report(project, "fresh") == report(project)


@pytest.mark.slow
def test_no_worker_left_to_restart_is_incomplete_too(project):
    flag = str(project.path / "died")
    project.makeconftest(TINY + method("mine", SUICIDE.format(flag=flag).strip()))
    result = project.runpytest_subprocess(*RUN, *TOGETHER, "-n1", "--max-worker-restart=0")
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*INCOMPLETE: no result from * item*halves-steep-*"])


@pytest.mark.slow
def test_the_installed_suites_serve_a_project_that_has_only_a_conftest(pytester):
    pytester.makeconftest(TINY)
    result = pytester.runpytest_subprocess(
        "-p",
        "no:cacheprovider",
        "--pyargs",
        "attrcheck.suites",
        "--attr-datasets=halves",
        "--attr-protocols=lerf,morf",
        "--attr-methods=exact,random",
        "--attr-checks=contract,target_sensitivity,randomisation,dummy_floor",
        "--attr-laws=none",
        "--attr-report",
        "-n2",
        "--attr-gate=exact.beats_random == all",
    )
    # Four cases, three checks of two methods, of which `random` must fail two, one check of the
    # four cases, and one gate.
    result.assert_outcomes(passed=13, xfailed=2)
    result.stdout.fnmatch_lines(["*4 cases x 2 methods*", "*1*exact*4/4*"])


@pytest.mark.slow
def test_workers_share_the_cores_and_do_not_spin(pytester):
    pytester.makeconftest(TINY)
    pytester.makepyfile(
        """
        import os, torch

        def test_threads(attr_case):
            attr_case.run()
            assert torch.get_num_threads() == max(1, len(os.sched_getaffinity(0)) // 2)
            assert os.environ["OMP_WAIT_POLICY"] == "passive"
        """
    )
    result = pytester.runpytest_subprocess(
        "-n2",
        "--attr-datasets=halves",
        "--attr-methods=exact",
        "--attr-models=linear",
        "--attr-protocols=lerf,morf",
    )
    result.assert_outcomes(passed=2)


@pytest.mark.slow
def test_what_is_deselected_is_not_expected(project):
    result = project.runpytest_subprocess(*RUN, "-n1", "-k", "linear")
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*INCOMPLETE*")


ONE_CORE = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
OTHERS = "\ndef test_other():\n    pass\n"
needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="this system cannot take cores away"
)


@needs_affinity
def test_workers_without_a_core_are_dismissed_and_not_missed(project):
    flag = str(project.path / "died")
    project.makeconftest(ONE_CORE + TINY + method("mine", SUICIDE.format(flag=flag).strip()))
    hurt = project.runpytest_subprocess(*RUN, *TOGETHER, "-n3", "--dist=worksteal", "-v")
    hurt.stdout.fnmatch_lines(["1 of 3 workers compute: this machine has one core"])
    hurt.assert_outcomes(passed=3, failed=2)  # the item that died, and the run, which lacks it
    ran = {line.split("]")[0] for line in hurt.outlines if "] PASSED" in line}
    assert ran == {"[gw0", "[gw3"}  # the first worker, and the one that took its place


@needs_affinity
@pytest.mark.parametrize("options", [("--dist=worksteal", "others"), ("--dist=load",)])
def test_all_workers_stay_for_tests_of_others_and_for_other_schedulers(project, options):
    project.makeconftest(ONE_CORE + TINY + method("mine", "return images"))
    if "others" in options:
        project.makepyfile(test_suite=ITEMS + OTHERS)
    result = project.runpytest_subprocess(
        *RUN, "--attr-models=linear", "-n2", *(one for one in options if one != "others")
    )
    result.assert_outcomes(passed=2 + ("others" in options))
    result.stdout.no_fnmatch_line("*workers compute*")


def test_a_bad_option_stops_a_spread_run_at_once(project):
    result = project.runpytest_subprocess("-n2", "--attr-methods=nobody")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no method is called 'nobody'*"])


RANDOM = """
import functools, numpy
def noisy(rng, model, images, targets):
    "Holds a generator."
    return images + torch.from_numpy(rng.normal(size=images.shape)) * 1e-9

attrcheck.method("mine_seeded")(functools.partial(noisy, numpy.random.default_rng(0)))
attrcheck.method("mine_random")(functools.partial(noisy, numpy.random.default_rng()))
"""


@pytest.mark.slow
def test_a_method_whose_key_is_random_is_warned_of(project):
    project.makeconftest(TINY + RANDOM)
    result = project.runpytest_subprocess(*RUN, "--attr-models=linear", "-n2")
    result.assert_outcomes(passed=2)
    told = [line for line in result.outlines if "so the store never serves its" in line]
    assert len(told) == 1
    assert "the key of method 'mine_random' is another in every process" in told[0]
