"""Tracing: what a network may branch on, how it can be helped, and what is said where it cannot."""

import pytest
import torch
from torch import fx, nn
from torch.nn import functional as F

from attrcheck.graph.predictor import predictor_of
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method as methods
from tests.graph.prepared import assert_ready, assert_same_output, kinds
from tests.worlds import smooth_images

IMAGES = smooth_images(2, 8)


class Net(nn.Module):
    """A convolution, whatever a function makes of it, and logits."""

    def __init__(self, function):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3, padding=1), nn.LazyLinear(3)
        self.function = function

    def forward(self, x):
        return self.head(self.function(self.conv(x)).flatten(1))


def same_padding(x):
    """As TensorFlow pads: by as much as the size asks for."""
    more = max((-(-x.shape[2] // 3) - 1) * 3 + 5 - x.size(2), 0)
    if more > 0:
        x = F.pad(x, [more // 2, more - more // 2] * 2)
    return F.max_pool2d(x, 5, 3)


def windows(x):
    """Cut into windows, as Swin does, with the batch as a factor of an axis."""
    batch, channels, height, width = x.shape
    x = x.view(batch, channels, height // 4, 4, width // 4, 4).permute(0, 2, 4, 3, 5, 1)
    x = x.reshape(-1, 16, channels)
    return x.mean(1).view(batch, x.shape[0] // batch, channels)


BRANCHES = {
    "same padding": same_padding,
    "windows": windows,
    "even": lambda x: x[..., ::2] if x.shape[-1] % 2 == 0 else x,
    "ndim": lambda x: x.relu() if x.ndim == 4 and x.dim() == 4 else x,
    "batch axis moved": lambda x: x.permute(1, 0, 2, 3).reshape(x.shape[1], x.shape[0], -1)[1],
    "rows": lambda x: sum(row for row in x.unbind(2)),
    "parts": lambda x: torch.cat([part.relu() for part in x.chunk(2, 1)], 1),
    "len": lambda x: x[:, : len(x.split(1, 1)) - 1],
    "batch in a view": lambda x: x.view(x.size(0), -1),
    "size as a tuple": lambda x: x.view(x.size()[0], *x.size()[2:], x.shape[1]),
    "assertion": lambda x: (torch._assert(x.shape[2] == 8, "size"), x)[1],
}


@pytest.mark.parametrize("how", BRANCHES)
def test_a_network_may_branch_on_the_size_of_images(how):
    network = Net(BRANCHES[how]).eval()
    network(IMAGES)
    prepared = prepare(network, IMAGES)
    assert_ready(prepared)
    for count in (1, 2, 3):
        assert_same_output(network, prepared, smooth_images(count, 8, seed=3))
    assert predictor_of(network, IMAGES).pure


def refused(network, images=IMAGES, **help):
    """The reason why a network has no graph; a warning gives it too."""
    with pytest.warns(NotTraceable) as caught:
        prepared = prepare(network, images, **help)
    assert type(prepared) is type(network)
    reason = methods.get("lrp").not_applicable(prepared)
    (warning,) = caught
    assert reason.partition("could not be traced: ")[2] in str(warning.message)
    return reason


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        if x.sum() > 0:  # what a graph cannot say
            return self.layer(x)
        return x


def gated():
    torch.manual_seed(0)
    head = nn.Sequential(nn.ReLU(), nn.Linear(4, 4), Gate())
    return nn.Sequential(nn.Flatten(), nn.Linear(192, 4), head, nn.Linear(4, 2)).eval()


def test_a_reason_names_what_cannot_be_traced_and_where():
    reason = refused(gated())
    assert "the model is not a prepared graph, as it could not be traced: TraceError: " in reason
    assert "control flow, at 2.2 in test_tracing.py:" in reason
    assert reason.endswith(": if x.sum() > 0:  # what a graph cannot say")


@pytest.mark.parametrize(
    "batch", [lambda n: n == 1, lambda n: n > 1, lambda n: n % 2], ids=["one", "many", "odd"]
)
def test_what_depends_on_the_number_of_images_is_not_guessed(batch):
    network = Net(lambda x: x.relu() if batch(x.shape[0]) else x)
    network(IMAGES)
    assert "control flow" in refused(network.eval())


@pytest.mark.parametrize("leaf", [(Gate,), ("2.2",), ("2",), (nn.Sequential,)])
def test_a_leaf_stays_in_one_piece(leaf):
    network = gated()
    if leaf == (nn.Sequential,):
        network = nn.ModuleList([network[0:2], network[2:]])
        network = Chain(network).eval()
    prepared = prepare(network, IMAGES, leaf=leaf)
    assert isinstance(prepared, fx.GraphModule)
    assert_same_output(network, prepared, IMAGES)
    assert_same_output(network, predictor_of(network, IMAGES, leaf=leaf), IMAGES)
    reason = methods.get("lrp").not_applicable(prepared)
    assert "there is no rule for" in reason
    maps = methods.get("gradient").attribute(prepared, IMAGES, torch.tensor([0, 1]))
    plain = IMAGES.clone().requires_grad_()
    network(plain).gather(1, torch.tensor([[0], [1]])).sum().backward()
    torch.testing.assert_close(maps, plain.grad.sum(1))


class Chain(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, x):
        for part in self.parts:
            x = part(x)
        return x


class Options(nn.Module):
    """Takes more than an image."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(192, 3)

    def forward(self, x, check=True, *others, scale=2.0, **more):
        if check and x.isnan().any():
            raise ValueError("not a number")
        return self.head(x.flatten(1)) * scale


def test_arguments_beside_the_image_can_be_given():
    network = Options().eval()
    assert "isnan().any()" in refused(network)
    prepared = prepare(network, IMAGES, concrete_args={"check": False})
    assert isinstance(prepared, fx.GraphModule)
    assert_same_output(network, prepared, IMAGES)


def test_arguments_that_change_the_logits_are_noticed():
    help = {"check": False, "scale": 3.0}
    assert "its graph computes other logits" in refused(Options().eval(), concrete_args=help)


class Draws(nn.Module):
    def forward(self, x):
        return x.mean((2, 3)) * torch.rand(3)


def test_a_graph_that_computes_something_else_is_not_used():
    network = Draws().eval()
    assert "other logits" in refused(network)
    assert not predictor_of(network, IMAGES).pure


def test_what_needs_no_graph_goes_on():
    network = gated()
    with pytest.warns(NotTraceable):
        prepared = prepare(network, IMAGES)
    gradients = methods.get("gradient")
    assert gradients.not_applicable(prepared) is None
    assert gradients.attribute(prepared, IMAGES, torch.tensor([0, 1])).shape == (2, 8, 8)


def test_without_images_a_graph_is_for_any_size():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).eval()
    prepared = prepare(network)
    for side in (5, 8):
        assert_same_output(network, prepared, smooth_images(2, side))
    assert kinds(prepared) == [nn.Conv2d, nn.AdaptiveAvgPool2d, nn.Flatten]
