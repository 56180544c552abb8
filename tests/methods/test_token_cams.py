"""CAMs on tokens: against hooks on the author's network, and against pytorch-grad-cam."""

import copy

import pytest
import torch
from torch import nn

from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from attrcheck.methods.stages import CoarseGrid, needs_maps, needs_stage
from tests.methods.cam_world import CAMS, attribute, enlarge
from tests.methods.test_cams import weigh
from tests.methods.token_world import CLASSES, KINDS, each_kind, each_network, error, subject

GRADIENT_CAMS = ["gradcam", "gradcam_pp", "xgradcam", "layercam"]
PEERS = {"gradcam": "GradCAM", "xgradcam": "XGradCAM", "layercam": "LayerCAM"}


def hooked(name, image, targets):
    """Activations and gradients [K, h, w] of the author's layer, reshaped as the author would."""
    network, kind = copy.deepcopy(subject(name)[0]), KINDS[name]
    kept = []
    network.get_submodule(kind.stage).register_forward_hook(lambda *call: kept.append(call[2]))
    for target in targets:
        with torch.enable_grad():
            logit = network(image[None].clone().requires_grad_())[0, target]
            (gradient,) = torch.autograd.grad(logit, kept[-1])
        yield kind.reshape(kept[-1].detach())[0], kind.reshape(gradient)[0]


@each_kind
def test_grid_and_prefix_are_found(name):
    _, model, images, _ = subject(name)
    layout = last_stage(model, images).layout
    assert (layout.kind, layout.grid, layout.prefix) == KINDS[name].layout


@each_kind
@pytest.mark.parametrize("cam", GRADIENT_CAMS)
def test_they_are_those_of_hooks_and_a_reshape_by_hand(cam, name):
    _, model, (image, _), _ = subject(name)
    assert method.get(cam).not_applicable(model) is None
    maps, targets = [], torch.arange(CLASSES)
    for activations, gradients in hooked(name, image, targets):
        total = 0
        for activation, gradient in zip(activations, gradients, strict=True):
            total = total + weigh(cam, activation, gradient) * activation
        maps.append(enlarge(total.clamp(min=0), image))
    wanted = torch.stack(maps)
    assert (wanted.amax((1, 2)) > 0).sum() > 2
    images = image.expand(CLASSES, -1, -1, -1)
    assert error(attribute(cam, model, images, targets), wanted) < 1e-6


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@each_kind
@pytest.mark.parametrize("cam", PEERS)
def test_they_are_those_of_pytorch_grad_cam_with_a_reshape(cam, name):
    import pytorch_grad_cam
    from pytorch_grad_cam.utils.model_targets import ClassifierOutputTarget

    network, model, images, _ = subject(name)
    images, targets = images[:1].expand(CLASSES, -1, -1, -1), torch.arange(CLASSES)
    network, kind = copy.deepcopy(network), KINDS[name]
    peer = getattr(pytorch_grad_cam, PEERS[cam])
    layer = network.get_submodule(kind.stage)
    with torch.enable_grad(), peer(network, [layer], reshape_transform=kind.reshape) as cams:
        inputs = images.clone().requires_grad_()
        wanted = cams(inputs, [ClassifierOutputTarget(int(t)) for t in targets])
    # Its maps are stretched to [0, 1] before they are enlarged.
    found = attribute(cam, model, images, targets)
    for mine, theirs in zip(found, torch.as_tensor(wanted), strict=True):
        both = torch.stack([mine.flatten(), theirs.to(mine).flatten()])
        assert mine.max() == 0 == theirs.max() or torch.corrcoef(both)[0, 1] > 0.9999
    assert found.max() > 0


@pytest.mark.parametrize("name", ["embedded", "timm-swin"])
def test_score_cam_channel_by_channel(name):
    _, model, images, targets = subject(name)
    images, targets = images[:1], targets[:1]
    image, target = images[0], targets[0]
    ((activations, _),) = hooked(name, image, targets)
    scores, masks = [], []
    for activation in activations:
        mask = enlarge(activation, image)
        masks.append((mask - mask.min()) / (mask.max() - mask.min()))
        scores.append(model((image * masks[-1])[None])[0, target])
    weights = torch.stack(scores).softmax(0)
    cam = (weights[:, None, None] * activations).sum(0).clamp(min=0)
    wanted = enlarge(cam, image)[None]
    assert error(attribute("scorecam", model, images, targets), wanted) < 1e-6


@pytest.mark.parametrize("name", ["embedded", "timm-swin"])
def test_ablation_cam_channel_by_channel(name):
    network, model, images, targets = subject(name)
    image, target, kind = images[0], targets[0], KINDS[name]
    ((activations, _),) = hooked(name, image, targets[:1])
    network, prefix = copy.deepcopy(network), kind.layout[2]
    channels = torch.arange(len(activations))

    def ablate(module, inputs, output):
        cells = output[:, prefix:] if kind.layout[0] == "tokens" else output.flatten(1, 2)
        cells.transpose(1, 2)[channels, channels] = 0

    network.get_submodule(kind.stage).register_forward_hook(ablate)
    left = network(image.expand(len(channels), -1, -1, -1))[:, target]
    weights = model(image[None])[0, target] - left
    cam = (weights[:, None, None] * activations).sum(0).clamp(min=0)
    found = attribute("ablation_cam", model, images, targets)[:1]
    assert error(found, enlarge(cam, image)[None]) < 1e-6
    assert (weights.abs() > 0).sum() > len(channels) / 2


@each_network
def test_every_cam_has_a_map_for_every_transformer(name):
    _, model, images, targets = subject(name)
    for cam in (*CAMS, "guided_gradcam"):
        assert method.get(cam).not_applicable(model) is None
        maps = attribute(cam, model, images, targets)
        assert maps.shape == images[:, 0].shape
        assert maps.isfinite().all()


class Cut(nn.Module):
    """Patches, with a class token in front or behind, perhaps in reverse; then attention."""

    def __init__(self, how):
        super().__init__()
        self.how = how
        self.patches, self.norm, self.head = nn.Conv2d(3, 4, 4, 4), nn.LayerNorm(4), nn.Linear(4, 3)
        self.token = nn.Parameter(torch.zeros(1, 1, 4))

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        if self.how == "reversed":
            tokens = tokens.flip(1)
        token = self.token.expand(x.shape[0], -1, -1)
        both = [tokens, token] if self.how == "behind" else [token, tokens]
        tokens = self.norm(torch.cat(both, 1))
        mixed = tokens + torch.softmax(tokens @ tokens.transpose(1, 2), 2) @ tokens
        return self.head(mixed[:, -1 if self.how == "behind" else 0])


def test_tokens_in_another_order_are_not_taken_for_cells():
    images, targets = subject("timm-vit")[2].float(), torch.tensor([0, 1])
    assert last_stage(prepare(Cut("front")), images).layout.prefix == 1
    for how in ("behind", "reversed"):
        model = prepare(Cut(how))
        assert last_stage(model, images).layout.prefix == 0
        # What is left are the cells of the convolution.
        found = attribute("gradcam", model, images, targets)
        assert torch.allclose(found, attribute("gradcam", model, images, targets, stage="patches"))
        assert found.max() > 0


def test_without_layer_norms_nobody_knows_which_tensors_are_tokens():
    network = Cut("front")
    network.norm = nn.Identity()
    assert "no layer norm shows which tensors are tokens" in needs_stage(prepare(network))


def test_methods_that_read_maps_decline_tokens():
    _, model, *_ = subject("timm-vit")
    assert needs_stage(model) is None
    assert "only cuts patches" in needs_maps(model)
    assert "only cuts patches" in method.get("captum:LayerGradCam").not_applicable(model)


def test_captum_reads_no_tokens():
    _, model, images, targets = subject("timm-mixer")
    with pytest.raises(ValueError, match="holds tokens, and LayerGradCam reads maps"):
        method.get("captum:LayerGradCam").attribute(model, images, targets, seeds=(1, 2))


@pytest.mark.parametrize("name", ["embedded", "timm-vit", "timm-swin"])
@pytest.mark.parametrize("peer", ["GradCAM", "AblationCAM", "EigenCAM"])
def test_pytorch_grad_cam_is_told_how_tokens_lie(peer, name):
    _, model, images, targets = subject(name)
    model, images = copy.deepcopy(model).float(), images.float()
    spec = method.get(f"gradcam:{peer}")
    assert spec.not_applicable(model) is None
    maps = spec.attribute(model, images, targets, seeds=(1, 2))
    assert maps.shape == images[:, 0].shape
    if peer == "GradCAM":
        wanted = attribute("gradcam", model, images, targets)
        for mine, theirs in zip(wanted, maps, strict=True):
            assert torch.corrcoef(torch.stack([mine.flatten(), theirs.flatten()]))[0, 1] > 0.999


def test_a_stage_of_tokens_by_name():
    _, model, images, targets = subject("torchvision-vit")
    first, last = (
        attribute("gradcam", model, images, targets, stage=f"encoder.layers.encoder_layer_{i}.ln_1")
        for i in (0, 1)
    )
    assert torch.equal(last, attribute("gradcam", model, images, targets))
    assert not torch.allclose(first, last, rtol=0.1)
    with pytest.raises(ValueError, match=r"no stage 'ln'.* \(4x4\)"):
        attribute("gradcam", model, images, targets, stage="ln")


def test_a_coarse_grid_of_tokens_warns():
    network = Cut("front")
    model, images = prepare(network), subject("timm-vit")[2].float()[..., :8, :8]
    with pytest.warns(CoarseGrid, match="grid of 2x2"):
        attribute("gradcam", model, images, torch.tensor([0, 1]))
