"""What comes back through an affine module, directly and by autograd."""

import pytest
import torch
from torch import nn

from attrcheck.graph.kinds import Mean
from attrcheck.methods import _affine

CONVOLUTIONS = [
    ({"padding": 1}, True),
    ({"stride": 2, "groups": 2, "bias": False}, True),
    ({"padding": (2, 0), "dilation": (2, 1), "stride": (1, 2)}, True),
    ({"padding": "valid"}, True),
    ({"padding": "same"}, False),
    ({"padding": 1, "padding_mode": "reflect"}, False),
]


def by_autograd(call, x, upstream):
    leaf = x.clone().requires_grad_()
    y = call(leaf)
    return y.detach(), torch.autograd.grad(y, leaf, upstream(y))[0]


def upstream_of(y):
    return torch.randn(y.shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize(("settings", "direct"), CONVOLUTIONS)
def test_convolutions(settings, direct):
    torch.manual_seed(0)
    module, x = nn.Conv2d(4, 6, 3, **settings).requires_grad_(False), torch.randn(2, 4, 9, 8)
    assert (_affine.direct(module, module.weight, x.shape) is not None) == direct
    wanted, back = by_autograd(module, x, upstream_of)
    value, transposed = _affine.run(module, x)
    assert torch.equal(value, wanted)
    assert torch.allclose(transposed(upstream_of(value)), back, atol=1e-5)
    weight, bias = module.weight.abs(), torch.randn(6)
    wanted, back = by_autograd(lambda t: module._conv_forward(t, weight, bias), x, upstream_of)
    value, transposed = _affine.convolve(module, weight, bias, x)
    assert torch.equal(value, wanted)
    for each in (transposed, _affine.transposed(module, weight, x)):
        assert torch.allclose(each(upstream_of(value)), back, atol=1e-5)


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (nn.Linear(5, 3), (2, 5)),
        (nn.Linear(5, 3, bias=False), (2, 4, 5)),
        (nn.AvgPool2d(2), (2, 3, 6, 6)),
        (nn.BatchNorm2d(3).eval(), (2, 3, 4, 4)),
        (Mean((2, 3), keepdim=False), (2, 3, 4, 4)),
    ],
)
def test_other_modules(module, shape):
    torch.manual_seed(0)
    x = torch.randn(shape)
    wanted, back = by_autograd(module, x, upstream_of)
    with torch.no_grad():
        value, transposed = _affine.run(module.requires_grad_(False), x)
        assert torch.equal(value, wanted)
        assert torch.allclose(transposed(upstream_of(value)), back, atol=1e-6)
    assert not value.requires_grad
    assert not x.requires_grad
