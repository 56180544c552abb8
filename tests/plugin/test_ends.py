"""Early ends: the report of what is there, marked INCOMPLETE; nobody and nothing left behind."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from attrcheck.plugin.ends import Ended, Signals
from attrcheck.report.files import FORMATS
from tests.worlds import ITEMS, TINY, method

pytest_plugins = ["pytester"]
RUN = (
    "-p",
    "no:cacheprovider",
    "-p",
    "no:randomly",
    "--attr-datasets=halves",
    "--attr-protocols=lerf,morf",
    "--attr-methods=exact,random,mine",
    "--attr-threads=1",
    "--attr-report",
)
# Quick on one model, and on the other there is time to send a signal.
SLOW = """
    if float(next(model.parameters()).abs().max()) > 5:
        open("started", "w").close()
        time.sleep(60)
    return images
""".strip()
WAIT = 60
"""Seconds until a test gives up; none takes as long."""


@pytest.fixture
def project(pytester, monkeypatch):
    """Two cases that end soon and two that do not, in a temporary directory of their own."""
    monkeypatch.setenv("TMPDIR", str(pytester.mkdir("temporary")))
    pytester.makeconftest("import time\n" + TINY + method("mine", SLOW))
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


@pytest.fixture
def earlier(project):
    """A report of an earlier run."""
    folder = project.mkdir("attr-report")
    path = folder / "report.json"
    path.write_text('{"missing": []}')
    os.utime(path, (1, 1))
    return path


def heed_interrupts():
    """What a shell starts in the background ignores Ctrl-C, and hands that down."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(project, *arguments, **more):
    """A run in a session, and so in a process group, of its own."""
    output = Path(project.path, "output")
    with output.open("w") as file:
        settings = {"stdout": file, "stderr": subprocess.STDOUT, "start_new_session": True}
        settings |= {"preexec_fn": heed_interrupts, **more}
        return subprocess.Popen([sys.executable, "-m", "pytest", *RUN, *arguments], **settings)


def until(condition, process=None):
    """Wait until something is so, or the process is over."""
    deadline = time.monotonic() + WAIT
    while not condition():
        assert time.monotonic() < deadline
        assert process is None or process.poll() is None, Path("output").read_text()
        time.sleep(0.02)


def family(process):
    """All processes that a run has started, itself included: they share its session."""
    alive = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # just gone
            continue
        if int(session) == process.pid and state != "Z":
            alive.append(int(path.parent.name))
    return alive


def check_left_behind(project, process):
    assert process.returncode != 0
    until(lambda: not family(process))  # none needs more than a moment
    assert not list((project.path / "temporary").glob("attrcheck*"))


def slow(*arguments):
    return pytest.param(*arguments, marks=pytest.mark.slow)


STEEP = ("halves-steep-lerf", "halves-steep-morf")
linux = pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")


@linux
@pytest.mark.parametrize(
    ("name", "to", "workers"),
    [
        slow("SIGTERM", os.kill, 0),
        ("SIGTERM", os.kill, 2),  # as of `timeout`, docker stop
        slow("SIGTERM", os.killpg, 0),  # as of a cluster's scheduler
        slow("SIGTERM", os.killpg, 2),
        ("SIGINT", os.killpg, 0),  # as of Ctrl-C
        slow("SIGINT", os.killpg, 2),
        slow("SIGHUP", os.killpg, 0),
        slow("SIGHUP", os.killpg, 2),
    ],
)
def test_a_signal_ends_a_run_with_a_report_of_what_is_there(project, earlier, name, to, workers):
    process = start(project, "-n", str(workers), "--attr-gate=exact.rank == 1")
    until(lambda: Path("started").exists(), process)
    if workers:  # the other worker computes the two cases that are quick
        time.sleep(1.5)
    before = time.monotonic()
    to(process.pid, getattr(signal, name))
    assert process.wait(WAIT) == pytest.ExitCode.INTERRUPTED
    assert time.monotonic() - before < 8  # xdist alone would wait for its workers
    check_left_behind(project, process)
    document = json.loads(earlier.read_text())
    assert {*STEEP} <= {*document["missing"]}
    assert len(document["missing"]) + len(document["cases"]) == 4
    if not workers:
        assert [case["id"] for case in document["cases"]] == [
            "halves-linear-lerf",
            "halves-linear-morf",
        ]
    assert [gate["passed"] for gate in document["gates"]] == [False]
    said = Path("output").read_text()
    assert "INCOMPLETE: no result from" in said
    assert "no result from halves-steep-lerf" in said


@linux
@pytest.mark.parametrize("workers", [0, slow(2)])
def test_a_lost_terminal_ends_a_run_with_a_report(project, earlier, workers):
    parent, child = os.openpty()

    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    streams = {"stdin": child, "stdout": child, "stderr": child}
    process = start(
        project, "-n", str(workers), **streams, start_new_session=False, preexec_fn=take_terminal
    )
    os.close(child)
    os.set_blocking(parent, False)

    def started():
        with suppress(BlockingIOError):
            os.read(parent, 65536)  # it would fill up
        return Path("started").exists()

    until(started)
    os.close(parent)  # the window is closed
    process.wait(WAIT)
    check_left_behind(project, process)
    assert {*STEEP} <= {*json.loads(earlier.read_text())["missing"]}


@pytest.mark.parametrize(
    ("option", "workers"),
    [("-x", 0), slow("-x", 2), slow("--maxfail=1", 0), slow("--maxfail=1", 2)],
)
def test_a_run_that_stops_at_a_failure_is_incomplete(project, earlier, option, workers):
    project.makeconftest(TINY + method("mine", "raise ValueError('out of luck')"))
    process = start(project, option, "-n", str(workers), "--attr-gate=exact.rank == 1")
    process.wait(WAIT)
    check_left_behind(project, process)
    document = json.loads(earlier.read_text())
    assert document["cases"]  # what there is
    if not workers:  # with two, the other one may have come to the end by then
        assert len(document["missing"]) == 3
    assert len(document["missing"]) + len(document["cases"]) == 4
    complete = "FAILED attrcheck::complete" not in Path("output").read_text()
    assert complete == (not document["missing"])


@pytest.mark.parametrize(("code", "workers"), [(0, 0), slow(7, 0), slow(0, 2), slow(7, 2)])
def test_pytest_exit_is_never_green(project, earlier, code, workers):
    project.makeconftest(
        TINY
        + method("mine", "return images")
        + f"""
import pytest

def pytest_runtest_teardown(item):
    if "linear-morf" in item.name:
        pytest.exit("enough", returncode={code})
"""
    )
    process = start(project, "-n", str(workers))
    process.wait(WAIT)
    check_left_behind(project, process)
    document = json.loads(earlier.read_text())
    if not workers:  # with two, the other one may have come to the end by then
        assert document["missing"] == [*STEEP]
    assert len(document["missing"]) + len(document["cases"]) == 4


def test_a_run_that_ends_before_any_item_says_that_the_report_is_an_earlier_one(project, earlier):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
def pytest_collection(session):
    open("started", "w").close()
    time.sleep(60)
"""
    )
    process = start(project)
    until(lambda: Path("started").exists(), process)
    process.send_signal(signal.SIGTERM)
    process.wait(WAIT)
    check_left_behind(project, process)
    assert json.loads(earlier.read_text()) == {"missing": []}
    assert f"{earlier} is of an EARLIER run: this one wrote no report" in Path("output").read_text()


@pytest.mark.parametrize("workers", [0, slow(2)])
def test_a_run_that_is_killed_leaves_no_report_that_could_be_taken_for_its_own(
    project, earlier, workers
):
    kept = earlier.with_name("report.previous.json")
    page = earlier.with_name("report.md")
    page.write_text("earlier")
    process = start(project, "-n", str(workers))
    until(lambda: Path("started").exists(), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(WAIT)
    names = sorted(path.name for path in earlier.parent.iterdir())
    assert names == ["report.previous.json", "report.previous.md"]
    assert json.loads(kept.read_text()) == {"missing": []}
    project.makeconftest(TINY)
    run = (*RUN, "--attr-methods=exact", f"-n{workers}")
    project.runpytest_subprocess(*run, "--attr-models=linear").assert_outcomes(passed=2)
    assert sorted(path.name for path in earlier.parent.iterdir()) == sorted(FORMATS)
    assert len(json.loads(earlier.read_text())["cases"]) == 2


def test_a_forked_child_ends_as_it_would_without_the_handlers():
    signals = Signals()
    signals.install()
    try:
        if not (child := os.fork()):
            os.kill(os.getpid(), signal.SIGTERM)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        with pytest.raises(Ended, match="SIGTERM"):
            os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGTERM)  # a second one would only lose the report
        assert signals.received == "SIGTERM"
    finally:
        signals.restore()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_handlers_of_others_stay():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under `nohup`
    signals = Signals()
    try:
        signals.install()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
    finally:
        signals.restore()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
