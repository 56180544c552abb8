"""The stage that a CAM looks at: the last one, or another by name."""

import functools
import warnings

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method
from attrcheck.methods.stages import CoarseGrid, stage_activations, stage_maps
from attrcheck.models import model as models
from tests import worlds
from tests.methods.cam_world import (
    CAMS,
    IMAGE,
    attribute,
    each_cam,
    published,
    tiny,
)
from tests.worlds import smooth_images


@each_cam
@pytest.mark.parametrize("stage", ["features.0", "features_0"])
def test_another_stage_by_the_name_of_its_module_or_node(name, stage):
    model, arrays = published()
    images, targets = arrays["images"][:1], arrays["targets"][:1]
    other = attribute(name, model, images, targets, (1,), stage=stage)
    last = attribute(name, model, images, targets, (1,), stage="features.1")
    assert torch.equal(last, attribute(name, model, images, targets, (1,)))
    assert not torch.allclose(other, last, rtol=0.1)


@pytest.mark.parametrize("family", ["resnet", "vit"])
def test_nothing_behind_a_stage_is_run_for_its_activations_alone(family):
    model, images = prepare(worlds.random_family(family)), smooth_images(2)
    wanted, _ = stage_activations(model, images)
    assert torch.equal(stage_maps(model, images), wanted)
    (*_, last) = (part for part in model.modules() if isinstance(part, nn.Linear))
    last.register_forward_pre_hook(lambda *_: pytest.fail("the head is run"))
    assert torch.equal(stage_maps(model, images), wanted)


def test_a_stage_can_be_bound_and_registered(registries):
    gradcam = method.get("gradcam")
    early = functools.partial(gradcam.attribute, stage="c1")
    method("gradcam_early", not_applicable=gradcam.not_applicable, constant=gradcam.constant)(early)
    model, arrays = published()
    found = method.get("gradcam_early").attribute(model, arrays["images"], arrays["targets"])
    wanted = attribute("gradcam", model, arrays["images"], arrays["targets"], stage="c1")
    assert torch.equal(found, wanted)


@each_cam
def test_an_unknown_stage_gets_close_matches_and_one_of_each_size(name):
    model, arrays = published()
    images, targets = arrays["images"][:1], arrays["targets"][:1]
    wanted = (
        r"no stage 'features\.2'; did you mean features_.*? "
        r"The last one of each size: tanh \(16x16\), features_1 \(8x8\)$"
    )
    with pytest.raises(ValueError, match=wanted):
        attribute(name, model, images, targets, (1,), stage="features.2")
    for no_map in ("f", "mean", "x", "output"):
        with pytest.raises(ValueError, match=f"no stage '{no_map}'"):
            attribute(name, model, images, targets, (1,), stage=no_map)


def test_a_coarse_grid_warns_once_a_model():
    model = tiny([[8.0, -4.0]])
    with pytest.warns(CoarseGrid, match=r"'_1'.* grid of 2x2, coarser than 4x4 patches"):
        attribute("gradcam", model, IMAGE, torch.tensor([0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in CAMS:
            attribute(name, model, IMAGE, torch.tensor([0]), (1,))
    with pytest.warns(CoarseGrid):
        attribute("scorecam", tiny([[8.0, -4.0]]), IMAGE, torch.tensor([0]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        attribute("gradcam", tiny([[8.0, -4.0, 1.0]], 4), smooth_images(1, 4), torch.tensor([0]))


class Branches(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))


class Tokens(nn.Module):
    """Patches, and then some way of mixing them."""

    def __init__(self, mix, after=None):
        super().__init__()
        self.patches, self.mix = nn.Conv2d(3, 4, 4, 4), mix
        self.after = after or nn.Identity()

    def forward(self, x):
        grid = self.patches(x)
        tokens = self.mix(grid.flatten(2).transpose(1, 2))
        return self.after(tokens.transpose(1, 2).unflatten(2, (2, 2))).mean((2, 3))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.MultiheadAttention(4, 2, batch_first=True)

    def forward(self, x):
        return self.heads(x, x, x)[0]


class Head(nn.Module):
    """A linear head written as a product with a weight: no attention."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(4))

    def forward(self, x):
        return x @ self.weight


@each_cam
def test_tokens_without_layer_norms_are_no_stage(name):
    applies = method.get(name).not_applicable
    assert applies(prepare(models.get("vit").build(worlds.blank()))) is None
    assert "attention follows" in applies(prepare(Tokens(Attention())))
    with_sdpa = Tokens(lambda x: F.scaled_dot_product_attention(x, x, x))
    assert "attention follows" in applies(prepare(with_sdpa))
    assert "attention follows" in applies(prepare(Tokens(lambda x: x @ x.transpose(1, 2) @ x)))
    assert applies(prepare(Tokens(Head()))) is None
    assert applies(prepare(Tokens(Attention(), nn.Conv2d(4, 4, 1)))) is None


@each_cam
def test_without_a_convolution_or_a_graph_there_is_no_cam(name):
    applies = method.get(name).not_applicable
    assert "no convolution" in applies(prepare(nn.Sequential(nn.Flatten(), nn.Linear(12, 3))))
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    assert "could not be traced" in applies(model)
    with pytest.raises(TypeError, match="prepared graph"):
        attribute(name, model, smooth_images(1, 4), torch.tensor([0]), (1,))
