"""Entries that were read lately are not read again, and nobody can change them for others."""

from pathlib import Path

import numpy as np
import pytest

from attrcheck.store import recent
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store


@pytest.fixture
def reads(monkeypatch):
    """The files that were read, in order."""
    read, seen = Path.read_bytes, []

    def counted(self):
        seen.append(self.name)
        return read(self)

    monkeypatch.setattr(Path, "read_bytes", counted)
    return seen


def ask(store, name, values=(1.0, 2.0)):
    return store.obtain(f"records/a/{name}", {"what": "it"}, lambda: Entry({"x": np.array(values)}))


def filled(folder, *names):
    """A store with some entries, as another process finds it."""
    store = Store(folder)
    store.open()
    for name in names:
        ask(store, name)
    return Store(folder)


def test_a_second_request_reads_no_file(tmp_path, reads):
    store = filled(tmp_path, "one")
    first, second = ask(store, "one"), ask(store, "one")
    assert len(reads) == 1
    assert first.arrays["x"].tolist() == second.arrays["x"].tolist()
    assert first.origin == second.origin


def test_what_one_does_to_arrays_the_next_does_not_see(tmp_path):
    store = filled(tmp_path, "one")
    ask(store, "one").arrays["x"][:] = 7
    assert ask(store, "one").arrays["x"].tolist() == [1.0, 2.0]


def test_the_one_not_asked_for_longest_goes(tmp_path, reads, monkeypatch):
    monkeypatch.setattr(recent, "MOST", 2)
    store = filled(tmp_path, "one", "two", "three")
    for name in ("one", "two", "one", "three"):
        ask(store, name)
    reads.clear()
    for name in ("one", "three", "two"):
        ask(store, name)
    assert [name.partition("-")[0] for name in reads] == ["two"]


def test_large_entries_do_not_stay(tmp_path, reads, monkeypatch):
    monkeypatch.setattr(recent, "LARGEST", 8)
    store = filled(tmp_path, "one")
    ask(store, "one")
    ask(store, "one")
    assert len(reads) == 2
