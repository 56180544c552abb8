"""Digests of values: alike everywhere, and another for every bit."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from attrcheck.store.digests import digest

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.tuples(inner, inner),
    max_leaves=4,
)


def test_a_digest_is_the_same_for_ever():
    assert digest("a", 1, None, np.arange(3, dtype="<i8")) == "540a4d705765c50d"


@given(st.lists(PLAIN, max_size=3), st.lists(PLAIN, max_size=3))
def test_a_digest_tells_values_apart(left, right):
    assert (digest(*left) == digest(*right)) == (repr(left) == repr(right))


@given(arrays(np.float32, array_shapes(max_dims=3, max_side=4), elements=st.floats(width=32)))
def test_a_tensor_counts_like_its_array(array):
    assert digest(torch.from_numpy(array.copy())) == digest(array)
    assert digest(np.asfortranarray(array)) == digest(array)


@pytest.mark.parametrize(
    "other",
    [
        np.arange(6.0).reshape(3, 2),
        np.arange(6.0),
        np.arange(6.0, dtype=np.float32).reshape(2, 3),
        np.arange(6).reshape(2, 3),
        np.arange(6.0).reshape(2, 3) + 1e-15,
        -np.arange(6.0).reshape(2, 3),
    ],
    ids=["shape", "axes", "precision", "kind", "last bits", "sign"],
)
def test_arrays_differ_by_dtype_shape_and_every_bit(other):
    assert digest(np.arange(6.0).reshape(2, 3)) != digest(other)


def test_an_array_counts_in_full_however_large_and_wherever_it_stands():
    one = np.arange(5000, dtype=np.float64)
    other = one.copy()
    other[2500] += 1e-9
    assert digest(one) != digest(other)
    assert digest(("rows", one)) != digest(("rows", other))
    assert digest([{"rows": one}]) != digest([{"rows": other}])


def test_a_digest_does_not_depend_on_how_arrays_are_printed():
    part = ("rows", np.array([0.123456789]))
    before = digest(part)
    with np.printoptions(precision=2):
        assert digest(part) == before


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.bool, torch.int64])
def test_tensors_of_any_dtype_have_a_digest(dtype):
    zeros = torch.zeros(3, dtype=dtype)
    assert digest(zeros) == digest(zeros.clone().requires_grad_(dtype.is_floating_point))
    assert digest(zeros) != digest(torch.ones(3, dtype=dtype))
