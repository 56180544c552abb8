"""Maps as values in [0, 1]: by hand, and within their bounds whatever the scale."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.protocols.values import normalised

SIDE = 6


@pytest.mark.parametrize("how", ["max", "clip"])
@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-30, 1.0, 1e30]))
def test_normalised_values_are_in_the_unit_interval(how, seed, scale):
    torch.manual_seed(seed)
    values = normalised(scale * torch.randn(3, SIDE, SIDE), how)
    assert values.dtype == torch.float64
    known = values[values.isfinite().all(2).all(1)]
    assert ((known >= 0) & (known <= 1)).all()
    if how == "max":
        assert (values.amax((1, 2)) == 1).all()


def test_normalisation_by_hand():
    maps = torch.tensor([[[-1.0, 1.0, 4.0]], [[-3.0, -2.0, 0.0]], [[0.5, 0.5, 0.5]]])
    values = normalised(maps, "max")
    assert values[0].tolist() == [[0, 0.25, 1]]
    assert values[1:].isnan().all()
    values = normalised(maps, "clip")
    assert values[0].tolist() == [[0, 1, 1]]
    assert values[1:].isnan().all()
