"""Random small faults against a small suite, for as long as one likes.

See docs/explanation/reliability.md.

ATTRCHECK_FUZZ_MINUTES=30 ATTRCHECK_FUZZ_SEED=7 pytest -m slow tests/test_fuzz.py -s

A trial spoils a run in one way: it is killed, its store is damaged, its disk is full, or a hostile
method takes part. A clean run on the same store must then give the report of a run that was never
spoilt; what does not is lost (a score is missing) or wrong (a score differs).
"""

import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.compare_reports import differences, plain
from tests.hostile import ELSEWHERE, HERE
from tests.worlds import ITEMS, TINY, method

MINUTES = float(os.environ.get("ATTRCHECK_FUZZ_MINUTES", "1"))
SEED = int(os.environ.get("ATTRCHECK_FUZZ_SEED", "0"))
ROOT = Path(__file__).parents[1]
ZOO = """
import sys
sys.path.insert(0, {root!r})
from tests.hostile import ELSEWHERE, HERE

hostile = {{**HERE, **ELSEWHERE}}[{title!r}]
attrcheck.method("dim_hostile", **hostile.settings)(hostile.attribute)
"""


def start(folder, *options):
    """A run of the project in a process group of its own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--attr-report"]
    return subprocess.Popen(
        [*command, "--attr-methods=exact,random,dim*", *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finish(process):
    """What a run printed, and its exit code; one that hangs is a failure."""
    try:
        output, _ = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail("a run did not end within two minutes")
    return output, process.returncode


def killed(folder, rng):
    """SIGKILL to the run and all its workers at any time."""
    process = start(folder, *(["-n", "2"] if rng.random() < 0.3 else []))
    time.sleep(rng.uniform(0.5, 6))
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def damaged(folder, rng):
    """Some files of the store are cut, flipped, emptied, exchanged or removed."""
    finish(start(folder))
    files = sorted((folder / ".attrcheck").rglob("*.safetensors"))
    for path in rng.sample(files, k=min(len(files), rng.randint(1, 5))):
        raw = bytearray(path.read_bytes())
        how = rng.choice(["cut", "flip", "empty", "exchange", "remove"])
        if how == "cut":
            path.write_bytes(raw[: rng.randrange(len(raw))])
        elif how == "flip":
            raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
            path.write_bytes(raw)
        elif how == "empty":
            path.write_bytes(b"")
        elif how == "exchange":
            shutil.copyfile(rng.choice(files), path)
        else:
            path.unlink()


def full_disk(folder, rng):
    """No file may grow beyond a few kilobytes."""
    limit = rng.choice([0, 500, 3000, 8000])
    code = (
        "import resource, sys, pytest; "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "sys.exit(pytest.main(['-q', '-p', 'no:cacheprovider', '--attr-methods=exact,random,dim']))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=False)


def hostile(folder, rng):
    """A method of the zoo takes part; one that does no harm leaves the run green."""
    conftest = folder / "conftest.py"
    before = conftest.read_text()
    zoo = {**HERE, **ELSEWHERE}
    title = rng.choice(sorted(zoo))
    conftest.write_text(before + ZOO.format(root=str(ROOT), title=title))
    output, code = finish(start(folder, "--attr-timeout=5"))
    conftest.write_text(before)
    assert code == bool(zoo[title].error), f"a method that {title!r}: {code}\n{output[-2000:]}"
    assert "dim_hostile" in output


FAULTS = [killed, damaged, full_disk, hostile]


@pytest.mark.slow
def test_no_fault_costs_a_result(tmp_path, capsys):
    rng = random.Random(SEED)
    project = tmp_path / "project"
    project.mkdir()
    (project / "conftest.py").write_text(TINY + method("dim", "return -images.abs()"))
    (project / "test_suite.py").write_text(ITEMS)
    (project / "pytest.ini").write_text("[pytest]\nattr_datasets = halves\nattr_profile = smoke\n")
    output, code = finish(start(project))
    assert code == 0, output
    wanted = report(project)
    shutil.rmtree(project / ".attrcheck")
    trials = dict.fromkeys((fault.__name__ for fault in FAULTS), 0)
    lost, wrong = [], []
    end = time.monotonic() + 60 * MINUTES
    while time.monotonic() < end:
        fault = rng.choice(FAULTS)
        fault(project, rng)
        shutil.rmtree(project / "attr-report", ignore_errors=True)
        output, code = finish(start(project))
        trials[fault.__name__] += 1
        if code != 0 or not (project / "attr-report" / "report.json").exists():
            lost.append((fault.__name__, output[-2000:]))
        elif changed := differences(wanted, report(project)):
            wrong.append((fault.__name__, changed[:5]))
        if rng.random() < 0.3:
            shutil.rmtree(project / ".attrcheck", ignore_errors=True)
    with capsys.disabled():
        print(f"\nseed {SEED}: {trials}, lost {len(lost)}, wrong {len(wrong)}")
    assert not lost, lost[0]
    assert not wrong, wrong[0]
    assert not list(project.rglob("*.lock"))


def report(project):
    """The report of the last run, without what differs from run to run."""
    return plain(json.loads((project / "attr-report" / "report.json").read_text()))
