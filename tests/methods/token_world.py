"""Small transformers of three libraries with random weights, and what their authors know of them.

`reshape` is what a user of pytorch-grad-cam would write, `stage` the layer that they would name.
"""

import functools
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from attrcheck.adapters.vision import timm, torchvision
from attrcheck.graph.preparing import prepare
from tests.worlds import random_family, smooth_images

COUNT, CLASSES = 2, 10


@dataclass(frozen=True)
class Kind:
    """build: without arguments. stage: in the author's network. reshape: its output as maps."""

    build: Any
    stage: str
    reshape: Any
    side: int = 32
    layout: tuple[str, tuple[int, int], int] = ("tokens", (4, 4), 1)


class Logits(nn.Module):
    """A network of transformers that returns the logits alone."""

    def __init__(self, network):
        super().__init__()
        self.network = network

    def forward(self, x):
        return self.network(x).logits


def timm_vit(name, **settings):
    sizes = {"img_size": 32, "patch_size": 8, "embed_dim": 24, "depth": 2, "num_heads": 2}
    return timm.create_model(name, num_classes=CLASSES, **{**sizes, **settings})


def torchvision_vit():
    sizes = (32, 8, 2, 2, 16, 32)  # image, patch, layers, heads, width, hidden
    return torchvision.models.VisionTransformer(*sizes, num_classes=CLASSES)


def torchvision_swin(version=1):
    swin = torchvision.models.swin_transformer
    v2 = {"block": swin.SwinTransformerBlockV2, "downsample_layer": swin.PatchMergingV2}
    sizes = ([4, 4], 12, [2, 2], [2, 2], [4, 4])  # patch, width, depths, heads, window
    more = {"num_classes": CLASSES, **(v2 if version == 2 else {})}
    return swin.SwinTransformer(*sizes, **more)


def timm_swin(name, **settings):
    sizes = {"img_size": 32, "embed_dim": 12, "depths": (2, 2), "num_heads": (2, 2)}
    return timm.create_model(name, num_classes=CLASSES, window_size=4, **sizes, **settings)


def hugging_face(kind, **settings):
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    sizes |= {"intermediate_size": 32, "image_size": 32, "patch_size": 8}
    config = getattr(transformers, f"{kind}Config")(**sizes, num_labels=CLASSES, **settings)
    return Logits(getattr(transformers, f"{kind}ForImageClassification")(config))


def cells(prefix, height, width):
    """Tokens behind a prefix, row by row."""

    def reshape(tokens):
        maps = tokens[:, prefix:, :].reshape(tokens.size(0), height, width, tokens.size(2))
        return maps.transpose(2, 3).transpose(1, 2)

    return reshape


def rows(tokens):
    return tokens.transpose(2, 3).transpose(1, 2)


VIT = "vit_tiny_patch16_224"
KINDS = {
    "embedded": Kind(
        lambda: random_family("vit"),
        "blocks.2.norm1",
        cells(1, 8, 8),
        layout=("tokens", (8, 8), 1),
    ),
    "torchvision-vit": Kind(torchvision_vit, "encoder.layers.encoder_layer_1.ln_1", cells(1, 4, 4)),
    "torchvision-swin": Kind(
        torchvision_swin, "permute", lambda maps: maps, 40, ("maps", (5, 5), 0)
    ),
    "timm-vit": Kind(lambda: timm_vit(VIT), "blocks.1.norm1", cells(1, 4, 4)),
    "timm-deit": Kind(
        lambda: timm_vit("deit_tiny_distilled_patch16_224"),
        "blocks.1.norm1",
        cells(2, 4, 4),
        layout=("tokens", (4, 4), 2),
    ),
    "timm-registers": Kind(
        lambda: timm_vit("vit_small_patch14_reg4_dinov2", init_values=0.5),
        "blocks.1.norm1",
        cells(5, 4, 4),
        layout=("tokens", (4, 4), 5),
    ),
    "timm-mean": Kind(
        lambda: timm_vit("vit_medium_patch16_gap_240", init_values=0.5, class_token=False),
        "norm",
        cells(0, 4, 4),
        layout=("tokens", (4, 4), 0),
    ),
    "timm-swin": Kind(
        lambda: timm_swin("swin_tiny_patch4_window7_224"), "norm", rows, 32, ("rows", (4, 4), 0)
    ),
    "timm-mixer": Kind(
        lambda: timm.models.mlp_mixer.MlpMixer(
            CLASSES, 32, patch_size=8, embed_dim=24, num_blocks=2
        ),
        "norm",
        cells(0, 4, 4),
        layout=("tokens", (4, 4), 0),
    ),
    "hugging-face-vit": Kind(
        lambda: hugging_face("ViT"),
        "network.vit.layers.1.layernorm_before",
        cells(1, 4, 4),
    ),
}
OTHERS = {
    "torchvision-swin-v2": (lambda: torchvision_swin(2), 40),
    "timm-swin-v2": (lambda: timm_swin("swinv2_tiny_window8_256"), 32),
    "timm-beit": (lambda: timm_vit("beit_base_patch16_224", init_values=0.5), 32),
    "timm-eva": (lambda: timm_vit("eva02_tiny_patch14_224"), 32),
    "timm-siglip": (lambda: timm_vit("vit_base_patch16_siglip_224"), 32),
    "hugging-face-dinov2": (lambda: hugging_face("Dinov2"), 32),
}
"""Whose grid is not looked for by hand."""

each_kind = pytest.mark.parametrize("name", KINDS)
each_network = pytest.mark.parametrize("name", [*KINDS, *OTHERS])


@functools.cache
def subject(name):
    """The author's network, prepared, images, targets; in double precision."""
    build, side = (KINDS[name].build, KINDS[name].side) if name in KINDS else OTHERS[name]
    torch.manual_seed(0)
    network = build().eval().requires_grad_(False)
    for parameter in network.parameters():
        if parameter.numel() > 1 and (parameter == parameter.flatten()[0]).all():
            # Zeros and ones: no such thing is left after training.
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    network, images = network.double(), smooth_images(COUNT, side).double()
    return network, prepare(network, images), images, network(images).argmax(1)


def error(found, wanted):
    """The largest error, relative to the largest value of the same image."""
    size = wanted.flatten(1).abs().amax(1).clamp(min=1e-30)
    return ((found - wanted).flatten(1).abs().amax(1) / size).max().item()
