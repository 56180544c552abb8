"""Every method proves what it claims, on every family of networks."""

import copy
from functools import cache

import pytest
import torch
from captum.attr import Deconvolution, DeepLift, GuidedBackprop
from torch import nn

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method
from tests import reference, worlds
from tests.reference import change, of, plain_gradient
from tests.worlds import FAMILIES, smooth_images, without_biases

METHODS = [
    *("saliency", "input_x_gradient", "integrated_gradients", "guided_backprop"),
    *("deconvolution", "deeplift", "lrp", "guided_gradcam"),
]
RULED = ["guided_backprop", "deconvolution", "deeplift", "lrp", "guided_gradcam"]
COUNT = 4


@cache
def subject(family, weights="random"):
    """A prepared model, images, and for each the class that it speaks of most."""
    if weights == "trained":
        network, images, _ = worlds.trained_family(family, COUNT)
    else:
        network, images = worlds.random_family(family), smooth_images(COUNT)
    model = prepare(network)
    return model, images, change(model, images).abs().argmax(1)


def attribute(name, model, images, targets):
    return method.get(name).attribute(model, images, targets)


def error(found, wanted):
    """The largest error, relative to the largest value of the same image."""
    dims = tuple(range(1, wanted.ndim))
    size = wanted.abs().amax(dims) if dims else wanted.abs()
    worst = (found - wanted).abs().amax(dims) if dims else (found - wanted).abs()
    return (worst / size).max().item()


def with_average_pooling(network):
    """A copy with means in place of maxima."""
    network = copy.deepcopy(network)
    for name, part in list(network.named_children()):
        if isinstance(part, nn.MaxPool2d):
            setattr(network, name, nn.AvgPool2d(part.kernel_size, part.stride))
    return network


each_family = pytest.mark.parametrize("family", FAMILIES)
each_method = pytest.mark.parametrize("name", METHODS)
both_weights = pytest.mark.parametrize("weights", ["random", "trained"])


@each_family
@each_method
def test_maps_have_one_finite_value_a_pixel(name, family):
    model, images, targets = subject(family)
    assert method.get(name).not_applicable(model) is None
    maps = attribute(name, model, images, targets)
    assert maps.shape == (COUNT, 32, 32)
    assert maps.isfinite().all()
    assert not maps.requires_grad
    assert (maps.amax((1, 2)) > maps.amin((1, 2))).all()
    assert (maps >= 0).all() == (name == "saliency")


@each_family
@each_method
def test_a_map_does_not_depend_on_the_batch(name, family):
    model, images, targets = subject(family)
    together = attribute(name, model, images, targets)
    alone = [attribute(name, model, images[i : i + 1], targets[i : i + 1]) for i in range(COUNT)]
    assert error(torch.cat(alone), together) < 1e-4


@each_family
@each_method
def test_model_and_images_are_left_untouched(name, family):
    model, images, targets = subject(family)
    kept, before = images.clone(), Snapshot.of(model)
    with torch.no_grad():
        attribute(name, model, images, targets)
        assert not torch.is_grad_enabled()
    assert before.change(model) is None
    assert torch.equal(images, kept)
    assert not images.requires_grad
    assert images.grad is None
    assert all(not part.requires_grad and part.grad is None for part in model.parameters())


@each_family
@both_weights
def test_deeplift_is_complete(family, weights):
    model, images, targets = subject(family, weights)
    total = attribute("deeplift", model, images, targets).sum((1, 2))
    assert error(total, of(change(model, images), targets)) < 1e-4


@each_family
@both_weights
def test_lrp_conserves_relevance_without_biases(family, weights):
    model, images, targets = subject(family, weights)
    bare = without_biases(model)
    targets = bare(images).abs().argmax(1)
    total = attribute("lrp", bare, images, targets).sum((1, 2))
    assert error(total, of(bare(images), targets)) < 1e-3


# Fifty nodes see each kink of a piecewise linear network only roughly: see the error of ReLU ones.
@pytest.mark.parametrize(
    ("family", "tolerance"), [("efficientnet", 1e-4), *((f, 0.05) for f in FAMILIES)]
)
def test_integrated_gradients_are_complete(family, tolerance):
    model, images, targets = subject(family)
    total = attribute("integrated_gradients", model, images, targets).sum((1, 2))
    assert error(total, of(change(model, images), targets)) < tolerance


@each_family
def test_integrated_gradients_are_those_of_the_formula(family):
    model, images, targets = subject(family)
    # In double precision, since rounding may push a node across a kink.
    model, images, targets = copy.deepcopy(model).double(), images[:2].double(), targets[:2]
    found = attribute("integrated_gradients", model, images, targets)
    assert error(found, reference.integrated_gradients(model, images, targets)) < 1e-7


@each_family
def test_the_gradient_methods(family):
    model, images, targets = subject(family)
    gradient = plain_gradient(model, images, targets)
    saliency = attribute("saliency", model, images, targets)
    assert error(saliency, gradient.sum(1).abs()) < 1e-5
    product = attribute("input_x_gradient", model, images, targets)
    assert error(product, (images * gradient).sum(1)) < 1e-5


@pytest.mark.parametrize("family", ["resnet", "vgg", "inception", "densenet"])
def test_without_biases_a_relu_network_is_linear_along_the_path(family):
    model, images, targets = subject(family)
    bare = without_biases(model)
    wanted = attribute("input_x_gradient", bare, images, targets)
    for name in ("integrated_gradients", "deeplift"):
        assert error(attribute(name, bare, images, targets), wanted) < 1e-3


@each_family
@pytest.mark.parametrize("name", ["guided_backprop", "deconvolution"])
def test_rectifying_methods_are_not_the_gradient(name, family):
    model, images, targets = subject(family)
    gradient = plain_gradient(model, images, targets).sum(1)
    found = attribute(name, model, images, targets)
    both = torch.stack([found.flatten(), gradient.flatten()])
    assert torch.corrcoef(both)[0, 1] < 0.5


@both_weights
@pytest.mark.parametrize(
    ("name", "peer"), [("guided_backprop", GuidedBackprop), ("deconvolution", Deconvolution)]
)
def test_rectifying_methods_equal_captum_where_it_sees_every_relu(name, peer, weights):
    model, images, targets = subject("vgg", weights)
    inputs = images.clone().requires_grad_()
    with pytest.warns(UserWarning, match="Setting backward hooks on ReLU"):
        wanted = peer(copy.deepcopy(model)).attribute(inputs, target=targets).sum(1)
    assert error(attribute(name, model, images, targets), wanted.detach()) < 1e-4


@both_weights
@pytest.mark.parametrize("family", ["vgg", "resnet"])
def test_deeplift_equals_captum_where_it_is_right(family, weights):
    model, images, targets = subject(family, weights)
    # Captum 0.9 loses part of the sum at a max pooling with a nonlinearity behind it.
    model = prepare(with_average_pooling(model))
    inputs = images.clone().requires_grad_()
    with pytest.warns(UserWarning, match="Setting forward, backward hooks"):
        wanted = DeepLift(copy.deepcopy(model)).attribute(inputs, target=targets).sum(1)
    assert error(attribute("deeplift", model, images, targets), wanted.detach()) < 1e-3


@both_weights
def test_lrp_equals_zennit_on_a_plain_stack(weights):
    import attrcheck.adapters.vision  # noqa: F401, I001  # zennit imports torchvision
    from zennit.attribution import Gradient
    from zennit.composites import EpsilonPlus

    model, images, targets = subject("vgg", weights)

    def logits_at_targets(output):
        return torch.zeros_like(output).scatter(1, targets[:, None], of(output, targets)[:, None])

    with Gradient(copy.deepcopy(model), EpsilonPlus()) as attributor:
        _, relevance = attributor(images.clone(), logits_at_targets)
    assert error(attribute("lrp", model, images, targets), relevance.detach().sum(1)) < 1e-3


def test_grad_cam_by_hand():
    torch.manual_seed(0)
    layers = [nn.Conv2d(3, 5, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 8 * 8, 4)]
    network = nn.Sequential(*layers).eval()
    images, targets = smooth_images(6, 16), torch.tensor([0, 1, 2, 3, 0, 1])
    # The gradient of a logit at the last stage is its row of the linear layer's weights.
    weights = network[3].weight[targets].view(6, 5, 8, 8).mean((2, 3), keepdim=True)
    cam = (weights * network[1](network[0](images))).sum(1).clamp(min=0)
    large = nn.functional.interpolate(cam[:, None], (16, 16), mode="bilinear")[:, 0]
    model = prepare(network)
    wanted = large * attribute("guided_backprop", model, images, targets)
    found = attribute("guided_gradcam", model, images, targets)
    assert torch.allclose(found, wanted.detach(), atol=1e-10)
    assert found.abs().max() > 1e-5


def test_guided_grad_cam_may_be_constant_and_says_why():
    network = nn.Sequential(nn.Conv2d(3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    model = prepare(network.append(nn.Linear(2, 2)))
    nn.init.constant_(model.get_submodule("4").weight, -1)
    spec = method.get("guided_gradcam")
    assert (spec.attribute(model, smooth_images(1, 4), torch.tensor([0])) == 0).all()
    assert "no region" in spec.constant


def test_random_depends_on_seeds_only():
    spec = method.get("random")
    assert spec.dummy
    images, targets = smooth_images(3, 8), torch.zeros(3, dtype=torch.int64)
    torch.manual_seed(1)
    first = spec.attribute(nn.Identity(), images, targets, seeds=(5, 6, 7))
    torch.manual_seed(2)
    second = spec.attribute(nn.Linear(1, 1), 2 * images[:2], targets[:2] + 1, seeds=(6, 5))
    assert torch.equal(first[[1, 0]], second)
    assert first.shape == (3, 8, 8)
    assert len(first.unique()) > 180
    assert 0 <= first.min() < 0.1 < 0.9 < first.max() < 1


class Branches(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))


class Lonely(nn.Module):
    """Some layers, and between them an operation that no rule knows."""

    def __init__(self, operation, activation):
        super().__init__()
        self.conv, self.activation = nn.Conv2d(3, 3, 1), activation
        self.operation = operation

    def forward(self, x):
        return self.operation(self.activation(self.conv(x))).mean((2, 3))


@pytest.mark.parametrize("name", RULED)
def test_methods_with_rules_do_not_apply_to_what_cannot_be_traced(name):
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    assert "could not be traced" in method.get(name).not_applicable(model)
    with pytest.raises(TypeError, match="prepared graph"):
        attribute(name, model, smooth_images(1, 4), torch.tensor([0]))


@pytest.mark.parametrize("name", ["saliency", "input_x_gradient", "integrated_gradients"])
def test_gradient_methods_apply_to_what_cannot_be_traced(name):
    with pytest.warns(NotTraceable):
        model = prepare(Branches())
    assert method.get(name).not_applicable(model) is None
    maps = attribute(name, model, smooth_images(2, 4), torch.tensor([0, 1]))
    assert maps.shape == (2, 4, 4)


@pytest.mark.parametrize(
    ("operation", "activation", "reasons"),
    [
        (torch.exp, nn.ReLU(), dict.fromkeys(RULED, "no rule for exp()")),
        (lambda x: 1 / x, nn.ReLU(), dict.fromkeys(RULED, "no rule for truediv()")),
        (lambda x: x - x.tanh(), nn.ReLU(), {"lrp": "no rule for sub()", "deeplift": "sub()"}),
        (lambda x: x / 2 + 1, nn.ReLU(), dict.fromkeys(RULED)),
        (nn.GroupNorm(1, 3), nn.ReLU(), {"deeplift": "no rule for GroupNorm (at operation)"}),
        (nn.GroupNorm(1, 3), nn.ReLU(), {"lrp": "no rule for GroupNorm", "deconvolution": None}),
        (nn.Tanh(), nn.Identity(), {"guided_backprop": "no rectifying", "lrp": None}),
        (nn.Tanh(), nn.Identity(), {"guided_gradcam": "no rectifying", "deconvolution": "no rect"}),
        (nn.Tanh(), nn.Sigmoid(), {"lrp": "a sigmoid that is not a gate", "deeplift": None}),
        (lambda x: x * x, nn.Sigmoid(), {"lrp": "a sigmoid that is not a gate"}),
        (lambda x: x, nn.Softplus(), {"lrp": "no rule for Softplus", "guided_backprop": None}),
    ],
)
def test_the_reason_names_what_stands_in_the_way(operation, activation, reasons):
    model = prepare(Lonely(operation, activation))
    for name, reason in reasons.items():
        found = method.get(name).not_applicable(model)
        assert found is None if reason is None else reason in str(found), name


def test_without_a_convolution_there_is_no_cam():
    model = prepare(nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.ReLU()))
    assert method.get("guided_backprop").not_applicable(model) is None
    assert "no convolution" in method.get("guided_gradcam").not_applicable(model)
    tiny = prepare(nn.Sequential(nn.Conv2d(3, 2, 4), nn.ReLU(), nn.Flatten()))
    with pytest.raises(ValueError, match=r"more than one pixel of \[1, 3, 4, 4\]"):
        attribute("guided_gradcam", tiny, smooth_images(1, 4), torch.tensor([0]))
