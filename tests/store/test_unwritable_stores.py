"""Folders and disks that cannot be written to."""

import errno
import os
import time
from pathlib import Path

import pytest

from attrcheck.store.entries import Store, StoreError
from tests.store.one_entry import FILE, KEY, NAME, left, python


@pytest.mark.parametrize("inside", ["", "below/it"])
def test_a_folder_that_cannot_be_made_is_an_error_that_says_what_to_do(tmp_path, inside):
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / inside
    with pytest.raises(StoreError) as caught:
        Store(folder).open()
    assert str(folder) in str(caught.value)
    assert "--attr-store" in str(caught.value)


def test_an_empty_folder_that_cannot_be_written_to_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *given: False)
    with pytest.raises(StoreError, match=r"read-only and empty.*--attr-store"):
        Store(tmp_path).open()


def test_a_read_only_store_serves_what_it_holds(store, path, obtain, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *given: False)
    store.open()
    assert obtain() == 0
    path.unlink()
    with pytest.raises(StoreError, match=r"read-only and empty.*--attr-store"):
        store.open()


def test_opening_makes_the_folder_and_hides_it_from_git(tmp_path):
    Store(tmp_path / "a" / "b").open()
    Store(tmp_path / "a" / "b").open()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == [".gitignore"]
    assert (tmp_path / "a" / "b" / ".gitignore").read_text() == "*\n"


def test_a_full_disk_costs_the_file_but_not_the_entry(store, obtain, monkeypatch):
    def full(self, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        assert obtain() == 1
    [problem] = store.problems
    assert FILE in problem
    assert "No space left on device" in problem
    assert "--attr-store" in problem
    assert left(store.folder) == []
    assert obtain() == 1
    assert obtain() == 0


def test_a_full_disk_leaves_an_older_entry_alone(store, path, obtain, monkeypatch):
    before = path.read_bytes()
    fresh = Store(store.folder, run="next-run", fresh=True)

    def full(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert obtain(store=fresh) == 1
    assert len(fresh.problems) == 1
    assert path.read_bytes() == before


def test_a_file_in_the_way_of_a_folder_costs_the_file_but_not_the_entry(store, obtain):
    (store.folder / "records").touch()
    assert obtain() == 1
    assert store.problems
    assert all(FILE in problem for problem in store.problems)


def test_a_file_in_the_way_of_the_locks_costs_no_more_than_the_lock(store, obtain):
    (store.folder / "locks").touch()
    assert obtain() == 1
    assert store.problems


def test_a_real_write_that_fails_half_way(tmp_path):
    """The system refuses to let a file grow beyond a limit, as a full disk or a quota would."""
    code = f"""
        import json, resource, sys
        from pathlib import Path
        import numpy as np
        from attrcheck.store.encoding import Entry
        from attrcheck.store.entries import Store
        store = Store(Path({str(tmp_path)!r}))
        store.open()
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
        entry = store.obtain("k", {{"a": "f"}}, lambda: Entry({{"rows": np.ones(1000)}}))
        assert entry.arrays["rows"].sum() == 1000
        print(*store.problems)
    """
    said = python(code)
    assert "File too large" in said
    assert str(tmp_path / "k-") in said
    assert left(tmp_path) == []
    assert list(tmp_path.glob("*.safetensors")) == []


def test_a_computation_that_raises_leaves_no_file_and_no_lock(store, obtain):
    def fail():
        raise OSError(errno.EIO, "the method's own trouble")

    with pytest.raises(OSError, match="own trouble"):
        store.obtain(NAME, KEY, fail)
    assert list(store.folder.glob("**/*.safetensors")) == []
    assert left(store.folder) == []
    assert store.problems == []
    started = time.monotonic()
    assert obtain() == 1
    assert time.monotonic() - started < 5
