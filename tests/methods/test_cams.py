"""CAMs: against the formula cell by cell, and against each other."""

import contextlib
import copy
import functools
import warnings

import numpy as np
import pytest
import torch

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.landmarks import last_stage
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method
from attrcheck.methods.cams import first_eigenvector, principal
from attrcheck.methods.noise import Noise
from attrcheck.methods.stages import CoarseGrid, needs_stage
from attrcheck.tensors.batching import limited_to
from tests import worlds
from tests.methods.cam_world import (
    IMAGE,
    SEEDS,
    at_stage,
    attribute,
    each_cam,
    enlarge,
    ignore_coarse,
    tiny,
)
from tests.worlds import FAMILIES, smooth_images

GRADIENT_CAMS = ["gradcam", "gradcam_pp", "xgradcam", "layercam"]


COUNT = 2


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


def error(found, wanted):
    """The largest error, relative to the largest value of the same image."""
    size = wanted.abs().amax((1, 2)).clamp(min=1e-30)
    return ((found - wanted).abs().amax((1, 2)) / size).max().item()


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
    assert name == "eigencam" or (maps >= 0).all()  # efficientnet's activations have both signs
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
    if name == "eigencam":  # it knows no class
        assert torch.equal(first, second)
    else:
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
        drawn = noise.of(image.expand(3, -1, -1, -1), [(seed, number) for number in range(3)])
        assert (drawn[0].std() / (image.max() - image.min()) - 0.15).abs() < 0.01
        copies = image + drawn
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


@each_family
def test_ablation_cam_channel_by_channel(family):
    model, images, targets = subject(family)
    image, target = images[1], targets[1]
    activations, _ = at_stage(model, image, target)
    channels = torch.arange(len(activations))
    hooked = copy.deepcopy(model)
    stage = next(n for n in hooked.graph.nodes if n.name == last_stage(model, images).name)

    def ablate(module, inputs, output):
        output[channels, channels] = 0

    hooked.get_submodule(stage.target).register_forward_hook(ablate)
    left = hooked(image.expand(len(channels), -1, -1, -1))[:, target]
    weights = model(image[None])[0, target] - left
    cam = (weights[:, None, None] * activations).sum(0).clamp(min=0)
    found = attribute("ablation_cam", model, images, targets)[1:]
    assert error(found, enlarge(cam, image)[None]) < 1e-3


@pytest.mark.parametrize("family", ["resnet", "densenet", "inception", "efficientnet"])
def test_ablation_cam_is_grad_cam_behind_a_global_mean_and_a_linear_head(family):
    """Without a channel the logit loses its share of it: the mean of A_k times its weight.

    So a weight of Ablation-CAM is the sum of A_k times that of Grad-CAM.
    """
    model, images, targets = subject(family)
    maps = []
    for image, target in zip(images, targets, strict=True):
        activations, gradients = at_stage(model, image, target)
        weights = (activations * gradients).sum((1, 2), keepdim=True)
        maps.append(enlarge((weights * activations).sum(0).clamp(min=0), image))
    assert error(attribute("ablation_cam", model, images, targets), torch.stack(maps)) < 1e-3


@each_family
@both_weights
def test_eigen_cam_is_the_first_component_of_numpys_svd(family, weights):
    model, images, targets = subject(family, weights)
    maps = []
    for image, target in zip(images, targets, strict=True):
        activations, _ = at_stage(model, image, target)
        cells = activations.flatten(1).T.double().numpy()
        cam = cells @ np.linalg.svd(cells)[2][0]
        cam = torch.from_numpy(cam if cam.sum() > 0 else -cam).view(activations.shape[1:])
        maps.append(enlarge(cam.float(), image))
    assert error(attribute("eigencam", model, images, targets), torch.stack(maps)) < 1e-4


@pytest.mark.parametrize("shape", [(2, 9, 4, 4), (2, 20, 4, 4), (2, 16, 4, 4)])
def test_eigen_cam_is_pytorch_grad_cams_of_centred_maps_but_for_the_sign(shape):
    from pytorch_grad_cam.utils.svd_on_activations import get_2d_projection

    activations = torch.randn(shape, generator=torch.manual_seed(3), dtype=torch.float64)
    activations = activations - activations.mean((2, 3), keepdim=True)
    wanted = torch.from_numpy(get_2d_projection(activations.numpy()))
    assert error(principal(activations).abs(), wanted.abs().double()) < 1e-6


def test_the_sign_of_eigen_cam_is_that_of_the_maps_and_no_rounding_shows():
    activations = torch.rand(3, 12, 5, 5, generator=torch.manual_seed(0)) - 0.1
    activations[:, :, 2, 3], activations[:, :, 0, 4] = 0, activations[:, :, 1, 1]
    maps = principal(activations)
    assert torch.equal(maps[:, 2, 3], torch.zeros(3))
    assert torch.equal(maps[:, 0, 4], maps[:, 1, 1])
    assert (maps.sum((1, 2)) > 0).all()
    assert torch.allclose(principal(-activations), maps, atol=1e-5)
    assert (principal(activations.relu()) >= 0).all()
    assert torch.equal(principal(torch.zeros(1, 3, 2, 2)), torch.zeros(1, 2, 2))


@pytest.mark.parametrize("second", [0.0, 0.3, 0.9, 0.99, 0.9999])
def test_the_first_eigenvector_however_near_the_second_is(second):
    bases = torch.linalg.qr(torch.randn(5, 12, 12, generator=torch.manual_seed(0)).double())[0]
    values = torch.tensor([1.0, second, second / 2, *[0.0] * 9]).double()
    # One is settled at once, and one is zero: neither is of use to the others.
    values = torch.stack([values, values * 1e6, values * 1e-6, 1.0 * (values == 1), values * 0])
    found = first_eigenvector(bases * values[:, None] @ bases.mT)
    cosines = (found * bases[:, :, :1]).sum((1, 2)) / found.square().sum((1, 2)).sqrt()
    assert torch.allclose(cosines[:4].abs(), torch.ones(4).double(), atol=1e-9)
    assert found[4].isfinite().all()


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


@ignore_coarse
@each_cam
def test_a_map_may_be_zero_and_says_why(name):
    model = tiny([[-1.0, -1.0], [1.0, 1.0]])
    dead = -IMAGE  # nothing passes the rectifier
    assert (attribute(name, model, dead, torch.tensor([0]), (1,)) == 0).all()
    assert ("all cells" if name == "eigencam" else "no region") in method.get(name).constant
    if name not in ("scorecam", "eigencam"):  # their weights are never negative
        still = {"noise": Noise(2, 0.0)} if name.startswith("smooth") else {}
        assert (attribute(name, model, IMAGE, torch.tensor([0]), (1,), **still) == 0).all()


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
