"""An open store, a written entry, and a way to obtain it."""

import pytest

from attrcheck.store.entries import Store
from tests.store.one_entry import ENTRY, FILE, KEY, NAME


@pytest.fixture
def store(tmp_path):
    """An open store."""
    store = Store(tmp_path / "store", run="this-run")
    store.open()
    return store


@pytest.fixture
def path(store):
    """The file of a written entry."""
    store.obtain(NAME, KEY, lambda: ENTRY)
    return store.folder / FILE


@pytest.fixture
def obtain(store, same_arrays):
    """Obtain the entry, which must be right; returns how often it was computed."""

    def obtain(name=NAME, key=KEY, store=store):
        computed = []

        def compute():
            computed.append(1)
            return ENTRY

        entry = store.obtain(name, key, compute)
        assert same_arrays(entry.arrays, ENTRY.arrays)
        assert entry.info == ENTRY.info
        return len(computed)

    return obtain
