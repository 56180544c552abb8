"""A store keeps what it is given, and finds it again by name and key."""

import warnings

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store
from tests.store.one_entry import FILE, KEY, NAME, left, never


def test_an_entry_is_computed_once(store, obtain):
    assert [obtain(), obtain(), obtain()] == [1, 0, 0]
    assert obtain(store=Store(store.folder, run="another-run")) == 0
    assert store.problems == []


def test_other_names_and_keys_are_other_entries(obtain):
    assert obtain() == 1
    assert obtain(name=NAME + "2") == 1
    assert obtain(key=KEY | {"seed": "1"}) == 1
    assert obtain(key=KEY | {"images": "8"}) == 1
    assert obtain() == 0


def test_the_order_of_a_keys_parts_does_not_matter(obtain):
    assert [obtain(), obtain(key=dict(reversed(KEY.items())))] == [1, 0]


def test_an_entry_is_one_file_named_after_name_and_key(store, obtain):
    obtain()
    assert (store.folder / FILE).is_file()
    assert left(store.folder) == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    values=st.sampled_from(["bool", "int64", "float32", "float64", "uint8"]).flatmap(
        lambda dtype: arrays(
            dtype, array_shapes(min_dims=0, max_dims=3, max_side=4) | st.just((0, 3))
        )
    ),
    info=st.dictionaries(
        st.text(), st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False)
    ),
)
def test_whatever_is_written_is_read_back_bit_for_bit(tmp_path, same_arrays, values, info):
    entry = Entry({"rows": values, "turned": values.T}, info)
    store = Store(tmp_path, run="this-run", fresh=False)
    store.path("k", KEY).unlink(missing_ok=True)
    store.obtain("k", KEY, lambda: entry)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = store.obtain("k", KEY, never)
    assert same_arrays(again.arrays, {"rows": values, "turned": values.T})
    assert again.info == info


def test_reading_does_not_depend_on_how_arrays_are_printed(path, obtain):
    with np.printoptions(precision=2, threshold=5), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert obtain() == 0


def test_fresh_ignores_older_runs_and_reuses_this_one(store, path, obtain):
    fresh = Store(store.folder, run="next-run", fresh=True)
    assert [obtain(store=fresh), obtain(store=fresh)] == [1, 0]
    same_run = Store(store.folder, run="next-run", fresh=True)
    assert obtain(store=same_run) == 0
    assert obtain(store=Store(store.folder, run="last-run")) == 0
    assert not (store.folder / "aside").exists()
