"""`--attr-shard I/N`, `attrcheck merge`, and then the report of a single run."""

import json
import os
import re

import pytest

from attrcheck import cli
from attrcheck.store.inventory import entries
from tests.plugin.test_plugin import run
from tests.worlds import ITEMS, TINY, method

pytest_plugins = ["pytester"]

LOGGED = """
    with open({log!r}, "a") as log:
        log.write("{name} " + str(len(images)) + "\\n")
    {more}
    return images
"""
DYING = """
    if os.path.exists("fuse") and sum(line[:6] == "mine_b" for line in open({log!r})) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
"""

MANY = 600
"""Images: three shards, the last one smaller."""


@pytest.fixture
def project(pytester):
    """A project whose dataset has three shards."""
    pytester.makeconftest(TINY.replace("30", str(MANY)))
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def report(project, folder="attr-report"):
    """All of a report but what is told of the run itself."""
    document = json.loads((project.path / folder / "report.json").read_text())
    document.pop("run")
    return document


def task(project, which, *arguments):
    """Run one of the tasks, with a store of its own."""
    store = f"--attr-store=runs/{which.replace('/', '_')}"
    return run(project, "--attr-images=600", f"--attr-shard={which}", store, *arguments)


def merge(project, *stores):
    folders = [str(project.path / "runs" / store) for store in stores]
    return cli.main(["merge", *folders, "--into", str(project.path / "merged")])


@pytest.mark.parametrize("value", ["0/4", "5/4", "3", "3/", "a/b", "-1/4", "1/0", "1/4/2"])
def test_a_task_that_does_not_exist_is_a_usage_error(project, value):
    result = run(project, f"--attr-shard={value}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*--attr-shard takes I/N with I from 1 to N*not {value}"])


def test_gates_of_the_command_line_are_refused_and_those_of_a_file_are_not_decided(project):
    result = task(project, "1/2", "--attr-gate=exact.rank == 1")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--attr-gate with --attr-shard*attrcheck merge*"])
    project.makepyprojecttoml('[tool.pytest]\nattr_gate = ["exact.rank == 7"]')
    result = task(project, "1/2", "-k", "linear-morf")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["gates not decided here: 1, from: *pyproject.toml"])


def test_a_task_computes_its_own_shards_and_no_board(project):
    result = task(project, "1/2", "--attr-report")
    result.assert_outcomes(passed=4)
    assert not (project.path / "attr-report").exists()
    other = task(project, "2/2")
    said = [
        re.search(r"shard ./2: (\d+) records, (\d+) of (\d+) shards", one.stdout.str())
        for one in (result, other)
    ]
    counts = [tuple(map(int, found.groups())) for found in said]
    # Four cases, two methods, three shards: the pairs begin with different tasks, or with one.
    assert sum(records for records, _, _ in counts) == 4 * 2 * 3
    result.stdout.fnmatch_lines(
        ["no board and no checks*", "when all 2 are done: `attrcheck merge runs/* --into STORE`*"]
    )
    numbers = [
        {item.name for item in entries(project.path / "runs" / store) if item.kind == "records"}
        for store in ("1_2", "2_2")
    ]
    assert not numbers[0] & numbers[1]
    assert len(numbers[0] | numbers[1]) == 4 * 2 * 3


def test_a_task_without_a_shard_is_green_and_says_so(project):
    results = [task(project, f"{which}/9", "-k", "linear-morf") for which in range(1, 10)]
    assert [result.ret for result in results] == [pytest.ExitCode.OK] * 9
    idle = [one for one in results if "nothing to compute" in one.stdout.str()]
    assert len(idle) == 6


def test_tasks_merged_give_the_report_of_a_single_run(project, passes):
    run(project, "--attr-images=600", "--attr-report", "--attr-report-dir=single")
    for which in ("1/3", "2/3", "3/3"):
        task(project, which)
    assert merge(project, "1_3", "2_3", "3_3") == 0
    passes.clear()
    result = run(
        project, "--attr-images=600", "--attr-isolate=off", "--attr-store=merged", "--attr-report"
    )
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*computing*shards*")
    assert report(project) == report(project, "single")
    # No image is scored again: the gallery of the report asks of sixteen, and tracing of fewer.
    assert max(passes) == 16
    fingerprints = [
        score["fingerprint"]
        for case in report(project)["cases"]
        for score in case["scores"].values()
    ]
    assert all(fingerprints)


def test_missing_shards_are_named_before_they_are_computed(project, capsys):
    for which in ("1/3", "2/3"):
        task(project, which, "-k", "linear-morf")
    assert merge(project, "1_3", "2_3") == 0
    result = run(project, "--attr-images=600", "--attr-store=merged", "-k", "linear-morf")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        ["halves-linear-morf: computing 1 of 3 shards that the store has not*: ? of all methods"]
    )
    again = run(project, "--attr-images=600", "--attr-store=merged", "-k", "linear-morf")
    again.stdout.no_fnmatch_line("*computing*")


@pytest.mark.slow
def test_workers_inside_a_task(project):
    result = project.runpytest_subprocess(
        *("-p", "no:cacheprovider", "--attr-datasets=halves", "--attr-protocols=lerf,morf"),
        *("--attr-methods=exact,random", "--attr-images=600", "--attr-shard=2/3", "-n2"),
    )
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["shard 2/3: 8 records, 1 of 3 shards of each case"])


def test_the_report_does_not_depend_on_the_size_of_shards(project):
    documents = []
    for size in (256, 512, 768):
        folder = f"--attr-report-dir=r{size}"
        chosen = (f"--attr-shard-size={size}", f"--attr-store=s{size}", "--attr-images=600")
        run(project, "--attr-report", folder, *chosen).assert_outcomes(passed=4)
        documents.append(report(project, f"r{size}"))
    assert documents[0] == documents[1] == documents[2]
    assert run(project, "--attr-shard-size=100").ret == pytest.ExitCode.USAGE_ERROR


def test_a_killed_run_loses_one_method_on_one_shard(project):
    """Three methods on three shards; the process dies in the second method on the second shard."""
    log = str(project.path / "log")
    conftest = TINY.replace("30", str(MANY))
    for name, more in {"mine_a": "", "mine_b": DYING.format(log=log).strip(), "mine_c": ""}.items():
        conftest += method(name, LOGGED.format(log=log, name=name, more=more).strip())
    project.makeconftest(conftest)
    chosen = (
        *("-p", "no:cacheprovider", "--attr-datasets=halves", "--attr-protocols=morf"),
        *("--attr-models=linear", "--attr-methods=mine_*", "--attr-images=600"),
        *("--attr-threads=1", "--attr-isolate=off"),
    )
    (project.path / "fuse").touch()
    killed = project.runpytest_subprocess(*chosen)
    assert killed.ret == -9
    (project.path / "fuse").unlink()

    def images():
        counts = dict.fromkeys(("mine_a", "mine_b", "mine_c"), 0)
        with open(log) as lines:
            for name, count in map(str.split, lines):
                counts[name] += int(count)
        os.remove(log)
        return counts

    assert images() == {"mine_a": 512, "mine_b": 512, "mine_c": 256}
    run(project, *chosen[2:]).assert_outcomes(passed=1)
    assert images() == {"mine_a": 88, "mine_b": 256 + 88, "mine_c": 256 + 88}
