"""Locks of the system or none: where there are none, one warning says what to do."""

import errno
import fcntl
import warnings

import numpy as np
import pytest

from attrcheck.store import locking
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store


def obtain(store, name="records/d-m-morf/lrp"):
    return store.obtain(name, {"a": "b"}, lambda: Entry({"rows": np.ones(2)}))


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP])
def test_without_locks_of_the_system_there_are_none_and_one_warning(tmp_path, monkeypatch, number):
    def flock(handle, how):
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.warns(locking.LockWarning, match=r"no locks here.*attrcheck merge"):
        obtain(Store(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        obtain(Store(tmp_path), "records/d-m-morf/other")
    assert list((tmp_path / "locks").iterdir()) == []
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2


def test_a_file_that_some_other_host_left_in_place_of_a_lock_stops_nobody(tmp_path, monkeypatch):
    store = Store(tmp_path)
    obtain(store, "records/d-m-morf/first")
    place = tmp_path / "locks" / store.path("records~d-m-morf~lrp", {"a": "b"}).name
    place.with_suffix(".lock").write_text("4711@elsewhere")
    obtain(store)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 2


def test_where_there_are_locks_nothing_is_said(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        obtain(Store(tmp_path))
