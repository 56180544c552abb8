"""Maps take only so much room: the ones not used for longest go, and nothing else does."""

import os

import numpy as np
import pytest

from attrcheck.store import entries, keeping
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store

MAP = 64 * 64 * 4
"""Bytes of the map that is stored here; its file has some more."""
FILE = MAP + 2000


def maps(store, number, pair="d-m"):
    """Have the maps of a method; whether they were computed."""
    computed = []

    def compute():
        computed.append(number)
        return Entry({"maps": np.full((1, 64, 64), number, np.float32)})

    entry = store.obtain(f"maps/{pair}/m{number}", {"number": str(number)}, compute)
    assert (entry.arrays["maps"] == number).all()
    return bool(computed)


def size(store):
    """Bytes of all maps on disk."""
    return sum(path.stat().st_size for path in (store.folder / "maps").rglob("*.safetensors"))


def age(store):
    """Let every file be used a minute earlier: clocks of files are coarse."""
    for path in (store.folder / "maps").rglob("*.safetensors"):
        state = path.stat()
        os.utime(path, ns=(state.st_atime_ns - 60 * 10**9, state.st_mtime_ns))


@pytest.mark.parametrize("most", [3 * FILE, 20 * FILE, 1000 * FILE])
def test_maps_never_take_more_room_than_that_and_one_more(tmp_path, most):
    store = Store(tmp_path, keep_maps=most)
    sizes = []
    for number in range(60):
        maps(store, number, pair=f"d-m{number % 3}")
        sizes.append(size(store))
    assert max(sizes) <= most + FILE
    # And most of the room is used.
    assert sizes[-1] > min(0.7 * most - FILE, 59 * MAP)


def test_two_processes_keep_to_it_together(tmp_path):
    most = 20 * FILE
    stores = [Store(tmp_path, keep_maps=most) for _ in range(4)]
    for number in range(80):
        maps(stores[number % 4], number)
        assert size(stores[0]) <= most + FILE


def test_those_that_were_not_used_for_longest_go_first(tmp_path):
    store = Store(tmp_path, keep_maps=8 * FILE)
    for number in range(6):
        maps(store, number)
        age(store)
    assert not maps(store, 0)  # used again
    age(store)
    for number in range(6, 9):
        maps(store, number)
        age(store)
    assert not maps(store, 0)
    assert not maps(store, 8)
    assert maps(store, 1)


def test_all_are_kept_if_that_is_asked_for_and_none(tmp_path):
    everything, nothing = Store(tmp_path / "all"), Store(tmp_path / "none", keep_maps=0)
    for store in (everything, nothing):
        assert all(maps(store, number) for number in range(5))
    assert not any(maps(everything, number) for number in range(5))
    assert all(maps(nothing, number) for number in range(5))
    assert not (tmp_path / "none" / "maps").exists()


def test_records_are_never_removed(tmp_path):
    store = Store(tmp_path, keep_maps=FILE)
    for number in range(5):
        name = f"records/d-m-morf/m{number}"
        store.obtain(name, {"number": str(number)}, lambda: Entry({"rows": np.zeros(10_000)}))
        maps(store, number)
    assert len(list((tmp_path / "records").rglob("*.safetensors"))) == 5


def test_the_folder_is_looked_at_rarely(tmp_path, monkeypatch):
    looks = []
    look = keeping.Keeper._states
    monkeypatch.setattr(keeping.Keeper, "_states", lambda self: looks.append(1) or look(self))
    store = Store(tmp_path, keep_maps=64 * 10 * FILE)
    for number in range(100):
        maps(store, number)
    assert len(looks) <= 1 + 100 // 10


def test_maps_that_vanish_while_they_are_read_are_computed_again(tmp_path, monkeypatch, recwarn):
    store = Store(tmp_path)
    maps(store, 1)
    path = next((tmp_path / "maps").rglob("*.safetensors"))
    start = entries.start_of
    monkeypatch.setattr(entries, "start_of", lambda at: (start(at), path.unlink())[0])
    assert maps(store, 1)
    assert not recwarn.list
