"""CAMs: against the formula cell by cell, against reference maps, and against each other."""

import contextlib
import copy
import functools
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method
from attrcheck.methods.noise import Noise
from attrcheck.methods.stages import CoarseGrid, needs_stage, stage_node
from attrcheck.models import model as models
from attrcheck.tensors.batching import limited_to
from tests import worlds
from tests.worlds import FAMILIES, smooth_images

CAMS = ["gradcam", "gradcam_pp", "smooth_gradcam_pp", "xgradcam", "layercam", "scorecam"]
GRADIENT_CAMS = ["gradcam", "gradcam_pp", "xgradcam", "layercam"]
COUNT = 2
SEEDS = (11, 12)

each_cam = pytest.mark.parametrize("name", CAMS)
each_family = pytest.mark.parametrize("family", FAMILIES)
both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


@functools.cache
def subject(family, weights="trained"):
    if weights == "trained":
        network, images, targets = worlds.trained_family(family, COUNT)
    else:
        network, images = worlds.random_family(family), smooth_images(COUNT)
        targets = network(images).argmax(1)
    return prepare(network), images, targets


def attribute(name, model, images, targets, seeds=SEEDS, **settings):
    if name == "smooth_gradcam_pp":
        settings["seeds"] = seeds
    return method.get(name).attribute(model, images, targets, **settings)


def error(found, wanted):
    """The largest error, relative to the largest value of the same image."""
    size = wanted.abs().amax((1, 2)).clamp(min=1e-30)
    return ((found - wanted).abs().amax((1, 2)) / size).max().item()


def at_stage(model, image, target):
    """Activations and gradients [K, h, w] of the last stage of one image, by plain hooks."""
    model = copy.deepcopy(model)
    kept = []
    node = next(n for n in model.graph.nodes if n.name == last_stage(model, image[None]))
    model.get_submodule(node.target).register_forward_hook(lambda *call: kept.append(call[2]))
    logit = model(image[None].clone().requires_grad_())[0, target]
    return kept[0][0].detach(), torch.autograd.grad(logit, kept[0])[0][0]


def weigh(name, activation, gradient):
    """The weight of each cell of one channel, cell by cell."""
    if name == "gradcam":
        return torch.full_like(activation, gradient.mean().item())
    if name == "xgradcam":
        total = activation.sum()
        share = activation / total if total != 0 else 0 * activation
        return torch.full_like(activation, (share * gradient).sum().item())
    if name == "layercam":
        return gradient.clamp(min=0)
    weight = 0.0
    for g in gradient.flatten().tolist():
        if g > 0:
            weight += g**2 / (2 * g**2 + max(0, activation.sum().item() * g**3)) * g
    return torch.full_like(activation, weight)


def by_hand(name, model, images, targets):
    maps = []
    for image, target in zip(images, targets, strict=True):
        activations, gradients = at_stage(model, image, target)
        cam = torch.zeros_like(activations[0])
        for activation, gradient in zip(activations, gradients, strict=True):
            cam += weigh(name, activation, gradient) * activation
        maps.append(enlarge(cam.clamp(min=0), image))
    return torch.stack(maps)


def enlarge(cam, image):
    return F.interpolate(cam[None, None], image.shape[1:], mode="bilinear")[0, 0]


@each_family
@each_cam
def test_maps_are_finite_and_not_negative(name, family):
    model, images, targets = subject(family)
    assert method.get(name).not_applicable(model) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the embedded families end on 8x8 maps
        maps = attribute(name, model, images, targets)
    assert maps.shape == (COUNT, 32, 32)
    assert maps.isfinite().all()
    assert (maps >= 0).all()
    assert maps.max() > 0
    assert not maps.requires_grad


@each_family
@each_cam
def test_a_map_does_not_depend_on_the_batch(name, family):
    model, images, targets = subject(family)
    together = attribute(name, model, images, targets)
    alone = [
        attribute(name, model, images[i : i + 1], targets[i : i + 1], SEEDS[i : i + 1])
        for i in range(COUNT)
    ]
    assert error(torch.cat(alone), together) < 1e-4


@each_cam
def test_a_map_does_not_depend_on_the_memory(name):
    model, images, targets = subject("resnet")
    with limited_to(1):
        one_by_one = attribute(name, model, images, targets)
    assert error(one_by_one, attribute(name, model, images, targets)) < 1e-4


@each_family
@each_cam
def test_model_and_images_are_left_untouched(name, family):
    model, images, targets = subject(family)
    kept, before = images.clone(), Snapshot.of(model)
    with torch.no_grad():
        attribute(name, model, images, targets)
        assert not torch.is_grad_enabled()
    assert before.change(model) is None
    assert torch.equal(images, kept)
    assert images.grad is None
    assert all(not part.requires_grad and part.grad is None for part in model.parameters())


@each_cam
def test_the_target_matters(name):
    model, images, targets = subject("resnet")
    other = (targets + 1) % model(images).shape[1]
    first, second = (attribute(name, model, images, each) for each in (targets, other))
    assert (first - second).abs().amax((1, 2)).min() > 1e-3 * first.max()


@each_family
@both_weights
@pytest.mark.parametrize("name", GRADIENT_CAMS)
def test_the_formula_channel_by_channel(name, family, weights):
    model, images, targets = subject(family, weights)
    wanted = by_hand(name, model, images, targets)
    assert error(attribute(name, model, images, targets), wanted) < 1e-4


@each_family
def test_smooth_grad_cam_pp_averages_over_all_noisy_copies(family):
    model, images, targets = subject(family)
    noise = Noise(samples=3)
    maps = []
    for image, target, seed in zip(images, targets, SEEDS, strict=True):
        assert (noise.of(image, seed, 0).std() / (image.max() - image.min()) - 0.15).abs() < 0.01
        copies = torch.stack([image + noise.of(image, seed, place) for place in range(3)])
        maps.append(by_hand("gradcam_pp", model, copies, target.expand(3)).mean(0))
    found = attribute("smooth_gradcam_pp", model, images, targets, noise=noise)
    assert error(found, torch.stack(maps)) < 1e-4
    assert error(found, attribute("gradcam_pp", model, images, targets)) > 0.01


@each_family
def test_smooth_grad_cam_pp_without_noise_is_grad_cam_pp(family):
    model, images, targets = subject(family)
    still = attribute("smooth_gradcam_pp", model, images, targets, noise=Noise(4, 0.0))
    assert error(still, attribute("gradcam_pp", model, images, targets)) < 1e-4


def test_smooth_grad_cam_pp_follows_the_seed():
    model, images, targets = subject("resnet")
    first, again, other = (
        attribute("smooth_gradcam_pp", model, images, targets, seeds)
        for seeds in (SEEDS, SEEDS, (1, 12))
    )
    assert torch.equal(first, again)
    assert not torch.equal(first[0], other[0])
    assert torch.equal(first[1:], other[1:])


@each_family
def test_score_cam_channel_by_channel(family):
    model, images, targets = subject(family)
    maps = []
    images, targets = images[1:], targets[1:]
    for image, target in zip(images, targets, strict=True):
        activations, _ = at_stage(model, image, target)
        blank = model(torch.zeros_like(image)[None])[0, target]
        scores, alive = [], []
        for activation in activations:
            mask = enlarge(activation, image)
            if mask.max() > mask.min():
                mask = (mask - mask.min()) / (mask.max() - mask.min())
                scores.append(model((image * mask)[None])[0, target] - blank)
                alive.append(activation)
        weights = torch.stack(scores).softmax(0)
        cam = sum(w * a for w, a in zip(weights, alive, strict=True))
        maps.append(enlarge(cam.clamp(min=0), image))
    assert error(attribute("scorecam", model, images, targets), torch.stack(maps)) < 1e-4


# Behind a global mean and a linear layer the gradient is the same in all cells of a channel.
@both_weights
@pytest.mark.parametrize("family", ["resnet", "densenet", "inception", "efficientnet"])
def test_xgrad_cam_is_grad_cam_behind_a_global_mean_and_a_linear_head(family, weights):
    model, images, targets = subject(family, weights)
    plain = attribute("gradcam", model, images, targets)
    assert error(attribute("xgradcam", model, images, targets), plain) < 1e-4


def test_xgrad_cam_is_not_grad_cam_behind_an_mlp():
    model, images, targets = subject("vgg")
    plain = attribute("gradcam", model, images, targets)
    assert error(attribute("xgradcam", model, images, targets), plain) > 0.01


class Published(nn.Module):
    """The network of the reference maps."""

    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 8, 5, 2, 2)
        self.features = nn.Sequential(nn.Conv2d(8, 12, 3, 2, 1), nn.Softplus())
        self.f = nn.Linear(12, 4)

    def forward(self, x):
        return self.f(self.features(torch.tanh(self.c1(x))).mean((2, 3)))


@functools.cache
def published():
    """The reference network, prepared, and the arrays of the reference."""
    with np.load(Path(__file__).parents[1] / "data" / "cams.npz") as file:
        arrays = {name: torch.from_numpy(file[name]) for name in file}
    network = Published()
    weights = {name[2:]: value for name, value in arrays.items() if name.startswith("w_")}
    network.load_state_dict(weights)
    return prepare(network), arrays


def scaled(maps, cams):
    """As the reference is: the small CAM scaled to [0, 1], then enlarged, which commutes."""
    low, high = (cams.amin((1, 2), keepdim=True), cams.amax((1, 2), keepdim=True))
    return (maps - low) / (high - low)


def small(model, images, targets, weights):
    """A CAM of the reference network before it is enlarged; weights of activations, gradients."""
    rows = [at_stage(model, image, target) for image, target in zip(images, targets, strict=True)]
    return torch.stack([(weights(a, g) * a).sum(0).clamp(min=0) for a, g in rows])


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("gradcam", lambda a, g: g.mean((1, 2), keepdim=True)),
        ("xgradcam", lambda a, g: g.mean((1, 2), keepdim=True)),
        ("layercam", lambda a, g: g.clamp(min=0)),
    ],
)
def test_the_reference_maps(name, weights):
    model, arrays = published()
    images, targets = arrays["images"], arrays["targets"]
    assert stage_node(model, images).target == "features.1"
    found = scaled(attribute(name, model, images, targets), small(model, images, targets, weights))
    assert (found - arrays[f"attr_{name}"][:, 0]).abs().max() < 1e-5


def test_the_published_grad_cam_pp_is_the_sum_of_cubes_and_ours_is_not():
    model, arrays = published()
    images, targets, wanted = arrays["images"], arrays["targets"], arrays["attr_gradcampp"][:, 0]
    cams = small(
        model, images, targets, lambda a, g: g.clamp(min=0).pow(3).sum((1, 2), keepdim=True)
    )
    cubes = torch.stack([enlarge(cam, images[0]) for cam in cams])
    assert (scaled(cubes, cams) - wanted).abs().max() < 1e-5
    ours = attribute("gradcam_pp", model, images, targets)
    both = torch.stack([ours.flatten(1), wanted.flatten(1)], 1)
    assert all(torch.corrcoef(pair)[0, 1] < 0.98 for pair in both)


def tiny(weight, side=2):
    """A 1x1 convolution that copies channels, a rectifier, a global mean and a linear head."""
    channels = len(weight[0])
    network = nn.Sequential(
        nn.Conv2d(channels, channels, 1, bias=False),
        nn.ReLU(),
        nn.AvgPool2d(side),
        nn.Flatten(),
        nn.Linear(channels, len(weight), bias=False),
    )
    network[0].weight.data = torch.eye(channels)[:, :, None, None]
    network[4].weight.data = torch.tensor(weight)
    return prepare(network)


IMAGE = torch.tensor([[[[1.0, 0.0], [2.0, 1.0]], [[0.0, 3.0], [0.0, 0.0]]]])
ignore_coarse = pytest.mark.filterwarnings("ignore::attrcheck.methods.stages.CoarseGrid")


@ignore_coarse
@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        # Channel 0 sums to 4 with gradient 8 / 4 = 2, channel 1 to 3 with gradient -4 / 4 = -1.
        ("gradcam", [[2.0, 0.0], [4.0, 2.0]]),
        ("xgradcam", [[2.0, 0.0], [4.0, 2.0]]),
        ("layercam", [[2.0, 0.0], [4.0, 2.0]]),
        # Four cells of 4 / (8 + 4 * 8) * 2 = 0.2 make a weight of 0.8.
        ("gradcam_pp", [[0.8, 0.0], [1.6, 0.8]]),
        ("smooth_gradcam_pp", [[0.8, 0.0], [1.6, 0.8]]),
    ],
)
def test_by_hand(name, wanted):
    still = {"noise": Noise(2, 0.0)} if name.startswith("smooth") else {}
    found = attribute(name, tiny([[8.0, -4.0]]), IMAGE, torch.tensor([0]), (1,), **still)
    assert torch.allclose(found, torch.tensor([wanted]))


@ignore_coarse
def test_score_cam_by_hand():
    # M_0 = A_0 / 2 leaves [[.5, 0], [2, .5]] and M_1 = A_1 / 3 leaves [[0, 0], [0, 0]] of channel
    # 0; of channel 1 they leave 0 and 3. So f(x M_0) = 2 * 3 = 6 and f(x M_1) = -3.
    weights = torch.tensor([6.0, -3.0]).softmax(0)
    wanted = weights[0] * IMAGE[:, 0] + weights[1] * IMAGE[:, 1]
    found = attribute("scorecam", tiny([[8.0, -4.0]]), IMAGE, torch.tensor([0]))
    assert torch.allclose(found, wanted)


@ignore_coarse
def test_grad_cam_pp_weights_are_the_true_derivatives_of_the_exponential():
    model = tiny([[3.0, 1.5, -2.0]], side=4)
    image = smooth_images(1, 4, seed=5).double().abs()
    model = model.double()
    activations, logit = image.clone(), None
    weights = torch.zeros(3, dtype=torch.float64)
    for k in range(3):
        total = activations[0, k].sum()
        for cell in range(16):
            x = activations[0, k].flatten()[cell].clone().requires_grad_()
            with_x = activations.flatten().clone()
            with_x[16 * k + cell] = 0
            hot = torch.zeros_like(with_x)
            hot[16 * k + cell] = 1
            logit = model((with_x + x * hot).view(1, 3, 4, 4))[0, 0]
            first = torch.autograd.grad(logit.exp(), x, create_graph=True)[0]
            second = torch.autograd.grad(first, x, create_graph=True)[0]
            third = torch.autograd.grad(second, x)[0]
            ratio = second / (2 * second + total * third)
            weights[k] += (ratio * first.clamp(min=0)).item()
    # The factor exp(f), the same for all channels, is left out of ours.
    wanted = (weights[:, None, None] / logit.exp().item() * activations[0]).sum(0)
    found = attribute("gradcam_pp", model, image, torch.tensor([0]))
    assert torch.allclose(found[0], wanted.detach(), rtol=1e-9)
    assert found.max() > 0.1


@ignore_coarse
def test_grad_cam_pp_survives_what_no_rectifier_made():
    # A_0 sums to -4 and has gradient 1 / 2: by the letter, cells would divide by 2 - 2 = 0.
    network = nn.Sequential(nn.Conv2d(2, 2, 1, bias=False), nn.AvgPool2d(2), nn.Flatten())
    network[0].weight.data = torch.eye(2)[:, :, None, None]
    network.append(nn.Linear(2, 1, bias=False))
    network[3].weight.data = torch.tensor([[2.0, 4.0]])
    image = torch.tensor([[[[-4.0, 0.0], [0.0, 0.0]], [[0.0, 4.0], [0.0, 0.0]]]])
    # Weights: four cells of .5 / 2, and four of 1 / (2 + 4).
    found = attribute("gradcam_pp", prepare(network), image, torch.tensor([0]))
    assert torch.allclose(found, torch.tensor([[[0.0, 8 / 3], [0.0, 0.0]]]))


@ignore_coarse
@each_cam
def test_a_map_may_be_zero_and_says_why(name):
    model = tiny([[-1.0, -1.0], [1.0, 1.0]])
    dead = -IMAGE  # nothing passes the rectifier
    assert (attribute(name, model, dead, torch.tensor([0]), (1,)) == 0).all()
    assert "no region" in method.get(name).constant
    if name != "scorecam":  # its weights are never negative
        still = {"noise": Noise(2, 0.0)} if name.startswith("smooth") else {}
        assert (attribute(name, model, IMAGE, torch.tensor([0]), (1,), **still) == 0).all()


@each_cam
@pytest.mark.parametrize("stage", ["features.0", "features_0"])
def test_another_stage_by_the_name_of_its_module_or_node(name, stage):
    model, arrays = published()
    images, targets = arrays["images"][:1], arrays["targets"][:1]
    other = attribute(name, model, images, targets, (1,), stage=stage)
    last = attribute(name, model, images, targets, (1,), stage="features.1")
    assert torch.equal(last, attribute(name, model, images, targets, (1,)))
    assert not torch.allclose(other, last, rtol=0.1)


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
def test_a_transformer_has_no_stage(name):
    applies = method.get(name).not_applicable
    blank = worlds.blank()
    assert "attention follows" in applies(prepare(models.get("vit").build(blank)))
    assert "attention follows" in applies(prepare(Tokens(Attention())))
    with_sdpa = Tokens(lambda x: F.scaled_dot_product_attention(x, x, x))
    assert "attention follows" in applies(prepare(with_sdpa))
    assert applies(prepare(Tokens(lambda x: x @ x.transpose(1, 2) @ x))) is not None
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


def test_the_cost_of_score_cam_is_that_of_the_widest_family():
    forward, backward = method.get("scorecam").passes
    widths = [
        at_stage(*(part[0] if i else part for i, part in enumerate(subject(family))))[0].shape
        for family in FAMILIES
    ]
    assert (forward, backward) == (1 + max(shape[0] for shape in widths), 0)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["resnet18", "vgg19", "efficientnet_b2", "densenet121"])
def test_torchvision(name):
    from attrcheck.adapters.vision import torchvision

    torch.manual_seed(0)
    network = torchvision.models.get_model(name, weights=None)
    model, images = prepare(worlds.enliven(network, 64)), smooth_images(2, 64)
    targets = model(images).argmax(1)
    wide = name == "vgg19"  # it ends on a 4x4 map, the others on 2x2
    with contextlib.nullcontext() if wide else pytest.warns(CoarseGrid, match="grid of 2x2"):
        plain = attribute("gradcam", model, images, targets)
    assert needs_stage(model) is None
    for each in GRADIENT_CAMS:
        wanted = by_hand(each, model, images, targets)
        assert error(attribute(each, model, images, targets), wanted) < 1e-3
    if not wide:
        assert error(attribute("xgradcam", model, images, targets), plain) < 1e-3
