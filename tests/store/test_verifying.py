"""Where entries come from, and whether they are still what is computed."""

import numpy as np
import pytest

from attrcheck.store.encoding import Entry, fingerprint
from attrcheck.store.entries import Store, VerificationError
from tests.store.one_entry import ENTRY, KEY, NAME


def test_an_entry_says_where_it_comes_from(store):
    later = Store(store.folder, run="a later run")
    computed, again, stored = (
        one.obtain(NAME, KEY, lambda: ENTRY).origin for one in (store, store, later)
    )
    assert (computed.stored, again.stored, stored.stored) == (False, False, True)
    assert computed.fingerprint == stored.fingerprint == fingerprint(KEY)
    assert computed.created == stored.created
    assert stored.versions["torch"] == computed.versions["torch"]


def verifying(store, share, run="r"):
    return Store(store.folder, run=run, verify=share)


def test_verifying_computes_a_share_of_what_is_found_again(store):
    names = [f"maps/a/{number}" for number in range(200)]
    for name in names:
        store.obtain(name, KEY, lambda: ENTRY)
    drawn = {}
    for run in ("one", "two"):
        again = verifying(store, 0.3, run)
        calls = []
        for name in names:
            again.obtain(name, KEY, lambda name=name, calls=calls: calls.append(name) or ENTRY)
        assert again.verified == len(calls)
        assert 30 <= len(calls) <= 90
        drawn[run] = calls
    assert drawn["one"] != drawn["two"]


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"correct": ~ENTRY.arrays["correct"]}, "12 of 12 values of correct differ"),
        ({"logit": ENTRY.arrays["logit"] + 1e-3}, "3000 of 3000 values of logit differ"),
        ({"logit": ENTRY.arrays["logit"][:2]}, r"logit is float64\[3000\], not float64\[2\]"),
        ({"more": np.zeros(1)}, "it has"),
    ],
)
def test_a_difference_that_no_key_covers_is_named(store, path, arrays, words):
    other = Entry({**ENTRY.arrays, **arrays}, ENTRY.info)
    with pytest.raises(VerificationError, match=words) as caught:
        verifying(store, 1.0).obtain(NAME, KEY, lambda: other)
    assert str(path) in str(caught.value)
    assert "depends" in str(caught.value)


@pytest.mark.parametrize("info", [{"passed": False}, {"figures": {"a": [1.0, 2.1]}}, {"more": 1}])
def test_a_verdict_that_differs_is_named(store, info):
    verdict = {"passed": True, "figures": {"a": [1.0, 2.0]}, "reason": "words", "seconds": 1.0}
    store.obtain("checks/a/b", KEY, lambda: Entry({}, verdict))
    same = Entry({}, {**verdict, "reason": "others", "seconds": 2.0})
    verifying(store, 1.0).obtain("checks/a/b", KEY, lambda: same)
    with pytest.raises(VerificationError, match=next(iter(info))):
        verifying(store, 1.0).obtain("checks/a/b", KEY, lambda: Entry({}, {**verdict, **info}))


def test_rounding_and_the_time_that_it_took_are_no_difference(store, path):
    arrays = {**ENTRY.arrays, "logit": ENTRY.arrays["logit"] * (1 + 1e-7)}
    other = Entry(arrays, {"seconds": 99.0, "constant": 2})
    entry = verifying(store, 1.0).obtain(NAME, KEY, lambda: other)
    assert entry.info == ENTRY.info
