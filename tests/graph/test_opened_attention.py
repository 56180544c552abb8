"""Attention that torch computes in one piece, written out in steps."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.landmarks import attentions
from attrcheck.graph.preparing import prepare
from tests.worlds import smooth_images


class Fused(nn.Module):
    """Attention in one call, as in timm, with or without what cannot be written out."""

    def __init__(self, **settings):
        super().__init__()
        self.patches, self.settings = nn.Conv2d(3, 4, 2, 2), settings

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2).unsqueeze(1)
        mixed = F.scaled_dot_product_attention(tokens + 1, tokens, tokens, **self.settings)
        return mixed.squeeze(1)[:, 0]


@pytest.mark.parametrize(
    ("settings", "visible"),
    [
        ({}, 1),
        ({"scale": 0.3, "dropout_p": 0.0, "attn_mask": None}, 1),
        ({"is_causal": True}, 0),
    ],
)
def test_fused_attention_is_written_out(settings, visible):
    network = Fused(**settings).eval()
    model, images = prepare(network), smooth_images(2, 6)
    assert len(attentions(model)) == visible
    assert torch.allclose(model(images), network(images), atol=1e-6)


class Closed(nn.Module):
    """torch's own attention module."""

    def __init__(self, **settings):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 2, 2)
        self.attend = nn.MultiheadAttention(8, 2, **settings)
        if self.attend.in_proj_bias is not None:
            nn.init.normal_(self.attend.in_proj_bias)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        mixed, weights = self.attend(tokens, 2 * tokens, tokens + 1)
        return mixed[:, 0] + weights.sum(1)[:, :8]


@pytest.mark.parametrize(
    ("settings", "visible"),
    [
        ({"batch_first": True}, 1),
        ({"batch_first": True, "bias": False, "dropout": 0.5}, 1),
        ({"batch_first": True, "add_zero_attn": True}, 0),
        ({"batch_first": True, "add_bias_kv": True}, 0),
        ({"batch_first": True, "kdim": 8, "vdim": 8}, 1),
    ],
)
def test_closed_attention_is_opened_where_it_is_of_the_usual_kind(settings, visible):
    torch.manual_seed(0)
    network = Closed(**settings).eval()
    model, images = prepare(network), smooth_images(2, 6)
    assert len(attentions(model)) == visible
    with torch.no_grad():
        assert torch.allclose(model(images), network(images), atol=1e-6)
    assert type(network.attend) is nn.MultiheadAttention
