"""float32 is computed in float32, unless a predictor is allowed fewer digits."""

import pytest
import torch
from torch import nn
from torch.backends import cuda, cudnn

from attrcheck.graph.predictor import predictor_of
from attrcheck.tensors.precision import be_exact, computing_in

IMAGES = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def as_before():
    before = cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, cuda.matmul.allow_tf32
    yield
    cudnn.deterministic, cudnn.benchmark, cudnn.allow_tf32, cuda.matmul.allow_tf32 = before


def network():
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(288, 5))
    return nn.Sequential(*layers).eval()


def test_by_default_cuda_is_exact_and_deterministic():
    cudnn.allow_tf32 = cuda.matmul.allow_tf32 = cudnn.benchmark = True
    be_exact()
    flags = cudnn.allow_tf32, cuda.matmul.allow_tf32, cudnn.benchmark, cudnn.deterministic
    assert flags == (False, False, False, True)


def test_tf32_is_allowed_within_a_pass_only():
    be_exact()

    class Asking(nn.Module):
        def forward(self, images):
            if images.sum() > 0:  # which no tracer can tell, so that it is run as it is
                seen.append((cudnn.allow_tf32, cuda.matmul.allow_tf32))
            return images.flatten(1)

    seen = []
    predictor_of(Asking(), precision="tf32")(IMAGES)
    predictor_of(Asking())(IMAGES)
    assert seen == [(True, True), (False, False)]
    assert not cudnn.allow_tf32
    with pytest.raises(ZeroDivisionError), computing_in("tf32", IMAGES.device):
        _ = 1 / 0
    assert not cuda.matmul.allow_tf32


def test_bfloat16_rounds_and_gives_logits_in_float32():
    exact, rounded = (
        predictor_of(network(), IMAGES, precision=name)(IMAGES) for name in ("float32", "bfloat16")
    )
    assert rounded.dtype == torch.float32
    gap = (exact - rounded).abs().max() / exact.abs().max()
    # Eight bits of a product, where float32 has 24.
    assert 2**-20 < gap < 2**-5
