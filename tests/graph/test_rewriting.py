"""Rewriting: in-place operations, norms and what is dropped."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attrcheck.graph.kinds import Add
from attrcheck.graph.preparing import prepare
from tests.graph.prepared import assert_ready, assert_same_output, kinds
from tests.worlds import enliven, smooth_images


class Aliases(nn.Module):
    """Relies on operations in place: what came before them is used again after them."""

    def __init__(self, change):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 3, 1), nn.ReLU(inplace=True)
        self.change = change

    def forward(self, x):
        x = y = self.conv(x)
        if self.change == "module":
            self.relu(x)
        elif self.change == "function":
            F.relu(x, inplace=True)
        elif self.change == "method":
            x.clamp_(min=-0.1).mul_(2)
        elif self.change == "torch":
            torch.relu_(x)
        elif self.change == "sum":
            x += self.conv(x)
        elif self.change == "number":
            x *= 3
        elif self.change == "difference":
            x -= 0.5
        elif self.change == "quotient":
            x /= 3
        elif self.change == "power":
            x **= 2
        return (x.sigmoid() + y).mean((2, 3))


CHANGES = ("module", "function", "method", "torch")


OPERATORS = ("sum", "number", "difference", "quotient", "power")


@pytest.mark.parametrize("change", [*CHANGES, *OPERATORS])
def test_in_place_operations_keep_their_meaning(change):
    network, images = Aliases(change).eval(), smooth_images(2, 4)
    prepared = prepare(network)
    assert_same_output(network, prepared, images)
    assert_ready(prepared)
    calls = [node for node in prepared.graph.nodes if node.op in ("call_function", "call_method")]
    names = {str(getattr(node.target, "__name__", node.target)) for node in calls}
    in_place = {"iadd", "imul", "isub", "itruediv", "ipow"}
    assert not [name for name in names if name.endswith("_") or name in in_place]


def test_the_input_is_not_changed_in_place():
    network = nn.Sequential(nn.ReLU(inplace=True), nn.Flatten(), nn.Linear(12, 2)).eval()
    images = smooth_images(1, 2)
    kept = images.clone()
    prepare(network)(images)
    assert torch.equal(images, kept)
    network(images)
    assert not torch.equal(images, kept)


class Fork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4)
        self.first = nn.BatchNorm2d(3)

    def forward(self, x):
        y = self.conv(self.first(x))
        return (self.norm(y) + y).flatten(1)


def test_a_norm_stays_where_others_see_what_it_sees():
    network = enliven(Fork(), 4)
    prepared = prepare(network)
    assert kinds(prepared) == [nn.BatchNorm2d, nn.Conv2d, nn.BatchNorm2d, Add]
    assert_same_output(network, prepared, smooth_images(2, 4))


def test_a_norm_after_a_linear_layer_is_folded():
    network = nn.Sequential(nn.Flatten(), nn.Linear(12, 3), nn.BatchNorm1d(3), nn.ReLU())
    network[2].running_mean.normal_()
    prepared = prepare(network.eval())
    assert kinds(prepared) == [nn.Flatten, nn.Linear, nn.ReLU]
    assert_same_output(network, prepared, smooth_images(2, 2))


class NormAct(nn.BatchNorm2d):
    """A norm layer with a built-in activation, as in timm."""

    def forward(self, x):
        y = F.batch_norm(
            *(x, self.running_mean, self.running_var, self.weight, self.bias),
            training=False,
            eps=self.eps,
        )
        return F.silu(y, inplace=True)


def test_a_functional_norm_is_folded_too():
    network = nn.Sequential(nn.Conv2d(3, 4, 3), NormAct(4, eps=0.1), nn.Flatten())
    network[1].running_mean.normal_()
    nn.init.normal_(network[1].weight)
    nn.init.normal_(network[1].bias)
    prepared = prepare(network.eval())
    assert kinds(prepared) == [nn.Conv2d, nn.SiLU, nn.Flatten]
    assert_same_output(network, prepared, smooth_images(2, 8))


class AlwaysDrops(nn.Module):
    def forward(self, x):
        return F.dropout(x, 0.5).flatten(1)


def test_dropout_that_is_active_in_eval_mode_stays():
    prepared = prepare(AlwaysDrops())
    assert (prepared(torch.ones(1, 3, 8, 8)) == 0).any()
