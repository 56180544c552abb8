"""Attention that torch computes in one piece, written out in steps."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.kinds import Product, Unit
from attrcheck.graph.landmarks import attentions
from attrcheck.graph.preparing import prepare
from tests.graph.prepared import modules
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
        ({"attn_mask": torch.linspace(-1, 1, 81).view(9, 9)}, 1),
        ({"attn_mask": torch.ones(9, 9).tril() > 0}, 1),
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
        if not self.attend.batch_first:
            tokens = tokens.transpose(0, 1)
        mixed, weights = self.attend(tokens, 2 * tokens, tokens + 1)
        mixed = mixed if self.attend.batch_first else mixed.transpose(0, 1)
        return mixed[:, 0] + weights.sum(1)[:, :8]


@pytest.mark.parametrize(
    ("settings", "visible"),
    [
        ({"batch_first": True}, 1),
        ({"batch_first": True, "bias": False, "dropout": 0.5}, 1),
        ({"batch_first": True, "add_zero_attn": True}, 0),
        ({"batch_first": True, "add_bias_kv": True}, 0),
        ({"batch_first": True, "kdim": 8, "vdim": 8}, 1),
        ({"batch_first": False}, 1),
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


def test_its_steps_are_modules():
    model = prepare(Fused())
    kinds = [type(part) for part in modules(model)]
    assert kinds.count(nn.Softmax) == 1
    assert kinds.count(Product) == 2


class Steps(nn.Module):
    """Products, a softmax and unit vectors, called in several ways."""

    def __init__(self, how):
        super().__init__()
        self.how, self.matrix = how, nn.Parameter(torch.randn(3, 3))

    def forward(self, x):
        tokens = x.flatten(2).transpose(1, 2) * self.matrix[0]
        if self.how == "bmm":
            return torch.bmm(input=tokens, mat2=tokens.transpose(1, 2))[:, 0]
        if self.how == "constant":
            return (tokens @ self.matrix)[:, 0]
        if self.how == "unit":
            return F.normalize(tokens, dim=-1)[:, 0]
        if self.how == "one-norm":
            return F.normalize(tokens, p=1.0, dim=-1)[:, 0]
        if self.how == "single":
            return F.softmax(tokens, dim=-1, dtype=torch.float32)[:, 0]
        return F.softmax(tokens, dim=-1, dtype=torch.float64)[:, 0]


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("bmm", Product),
        ("constant", None),
        ("unit", Unit),
        ("one-norm", None),
        ("single", nn.Softmax),
        ("double", None),
    ],
)
def test_what_becomes_a_module(how, kind):
    torch.manual_seed(0)
    network, images = Steps(how), smooth_images(2, 3)
    model = prepare(network)
    assert [type(part) for part in modules(model)] == ([kind] if kind else [])
    assert torch.allclose(model(images), network(images), atol=1e-6)


@pytest.mark.parametrize("side", [16, 32, 40])
@pytest.mark.parametrize("version", [1, 2])
def test_windows_of_torchvision_are_opened(version, side):
    """Also where windows do not fit, and where one holds all, so that nothing is shifted."""
    from tests.methods.token_world import torchvision_swin

    torch.manual_seed(0)
    network = torchvision_swin(version).eval()
    for name, parameter in network.named_parameters():
        if name.endswith(("bias_table", "bias", "cpb_mlp.2.weight")):
            nn.init.normal_(parameter)
    for images in (smooth_images(2, side), smooth_images(3, side)[..., : side - 8]):
        model = prepare(network, images)
        assert len(attentions(model)) == 4
        with torch.no_grad():
            wanted = network(images)
            assert (model(images) - wanted).abs().max() < 1e-5 * wanted.abs().max()
            assert (model(images[:1]) - wanted[:1]).abs().max() < 1e-5 * wanted.abs().max()


@pytest.mark.parametrize("kind", ["ViT", "Dinov2", "Beit", "DeiT"])
@pytest.mark.parametrize("how", ["sdpa", "eager"])
def test_attention_of_hugging_face_is_opened(kind, how):
    from tests.methods.token_world import hugging_face

    torch.manual_seed(0)
    network, images = hugging_face(kind, attn_implementation=how).eval(), smooth_images(2)
    model = prepare(network, images)
    assert len(attentions(model)) == 2
    with torch.no_grad():
        assert torch.allclose(model(images), network(images), atol=1e-5)
