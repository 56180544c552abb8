import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.store.seeds import derive

NAMES = st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=())), max_size=4)
KEYS = st.tuples(st.integers(0, 2**64), NAMES)


def test_seeds_are_the_same_for_ever():
    assert derive(0, "digits", "image1", "random") == 9026887325397413743
    assert derive(7) == 8333924190356522945


@given(KEYS, KEYS)
def test_different_names_give_different_seeds(left, right):
    same = derive(left[0], *left[1]) == derive(right[0], *right[1])
    assert same == (left == right)


@given(KEYS)
def test_a_seed_fits_numpy_and_torch(key):
    seed = derive(key[0], *key[1])
    assert 0 <= seed < 2**63
    np.random.default_rng(seed)
    torch.Generator().manual_seed(seed)


def test_names_are_not_glued_together():
    ways = [("ab", "c"), ("a", "bc"), ("abc",), ("a", "b", "c"), ("abc", ""), ("", "abc")]
    assert len({derive(0, *names) for names in ways}) == len(ways)
    assert derive(1, "2") != derive(12) != derive(1, "", "2")
