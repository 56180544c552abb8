"""Many processes on one store: locks, and who computes what."""

import os
import signal
import subprocess
import time

import pytest

from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store
from attrcheck.store.locking import BusyError
from tests.store.one_entry import ENTRY, KEY, NAME, command


def test_entries_can_be_obtained_while_another_is_computed(store, obtain):
    def compute():
        assert obtain("maps/tiny-linear/gradient") == 1
        return ENTRY

    store.obtain(NAME, KEY, compute)
    assert obtain() == 0
    assert obtain("maps/tiny-linear/gradient") == 0


WORKER = """
    import os, sys, time
    from pathlib import Path
    import numpy as np
    from attrcheck.store.encoding import Entry
    from attrcheck.store.entries import Store
    folder = Path(sys.argv[1])
    def compute():
        (folder / f"computed-{{os.getpid()}}").touch()
        {work}
        return Entry({{"rows": np.arange(3)}})
    store = Store(folder / "store", run="r")
    store.open()
    (folder / f"ready-{{os.getpid()}}").touch()
    while len(list(folder.glob("ready-*"))) < {workers}:
        time.sleep(0.01)
    print(store.obtain("a/k", {{"a": "f"}}, compute).arrays["rows"].tolist(), store.problems)
"""


def test_who_does_not_wait_is_told_that_another_is_at_work(store, obtain):
    other = Store(store.folder)

    def compute():
        with pytest.raises(BusyError):
            other.obtain("maps/a", KEY, lambda: pytest.fail("computed twice"), wait=False)
        return other.obtain("maps/b", KEY, lambda: Entry({}, {"of": "b"}), wait=False)

    assert store.obtain("maps/a", KEY, compute).info == {"of": "b"}
    assert other.obtain("maps/a", KEY, lambda: pytest.fail("not found")).info == {"of": "b"}


def test_no_lock_is_left_behind(store, obtain):
    obtain()
    with pytest.raises(ValueError, match="no"):
        store.obtain("maps/a", KEY, lambda: int("no"))
    assert list((store.folder / "locks").iterdir()) == []


def test_two_processes_compute_an_entry_once(tmp_path):
    code = WORKER.format(work="time.sleep(0.3)", workers=2)
    workers = [
        subprocess.Popen(command(code, tmp_path), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [worker.communicate(timeout=60)[0].strip() for worker in workers]
    assert answers == ["[0, 1, 2] []"] * 2
    assert len(list(tmp_path.glob("computed-*"))) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_holder_of_a_lock_blocks_nobody(tmp_path):
    code = WORKER.format(work="time.sleep(60)", workers=1)
    holder = subprocess.Popen(command(code, tmp_path), stdout=subprocess.PIPE)
    try:
        while not list(tmp_path.glob("computed-*")):
            assert holder.poll() is None
            time.sleep(0.02)
    finally:
        os.kill(holder.pid, signal.SIGKILL)
        holder.communicate()
    started = time.monotonic()
    store = Store(tmp_path / "store")
    entry = store.obtain("a/k", {"a": "f"}, lambda: ENTRY)
    assert time.monotonic() - started < 5
    assert entry.arrays is ENTRY.arrays
    assert store.path("a/k", {"a": "f"}).is_file()
