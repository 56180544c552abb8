import re

import pytest
import torch
from torch import nn

from attrcheck.graph.guard import Snapshot
from attrcheck.graph.preparing import prepare


class Model(nn.Module):
    """Weights, buffers of both kinds, and parts without any state."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm2d(2)
        self.act = nn.ReLU()
        self.head = nn.Sequential(nn.Flatten(), nn.Linear(8, 3))
        self.register_buffer("scale", torch.ones(1), persistent=False)

    def forward(self, images):
        return self.head(self.act(self.norm(images))) * self.scale


@pytest.fixture
def model():
    torch.manual_seed(0)
    return Model().eval().requires_grad_(False)


@pytest.fixture
def change(model):
    """What a snapshot taken before says of the model now."""
    before = Snapshot.of(model)
    return lambda: before.change(model)


def test_a_model_that_was_only_used_is_unchanged(model, change):
    images = torch.rand(4, 2, 2, 2, requires_grad=True)
    handle = model.act.register_forward_hook(lambda *_: None)
    model(images).sum().backward()
    handle.remove()
    assert change() is None


def test_a_change_that_was_undone_is_none(model, change):
    model.train()
    model.eval()
    kept = model.head[1].weight.clone()
    model.head[1].weight.zero_()
    model.head[1].weight.copy_(kept)
    assert change() is None


def test_a_snapshot_does_not_follow_the_model(model):
    before = Snapshot.of(model)
    model.head[1].bias.fill_(7)
    assert before.change(model)
    assert Snapshot.of(model).change(model) is None


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda m: m.head[1].weight[0, 0].add_(1e-6), "weights.*head.1.weight"),
        (lambda m: m.head[1].bias.zero_(), "weights.*head.1.bias"),
        (lambda m: m.norm.running_mean.add_(1), "norm.running_mean"),
        (lambda m: m.norm.num_batches_tracked.add_(1), "norm.num_batches_tracked"),
        (lambda m: m.scale.mul_(2), "scale"),
        (lambda m: setattr(m.head[1], "bias", nn.Parameter(torch.ones(3))), "head.1.bias"),
        (lambda m: m.double(), "norm.weight"),
        (lambda m: m.train(), "mode.*the model itself.*eval"),
        (lambda m: m.norm.train(), "mode.*norm.*eval"),
        (lambda m: setattr(m.act, "training", True), "mode.*act.*eval"),
    ],
    ids=[
        "one weight",
        "bias",
        "buffer",
        "counter",
        "buffer that is not saved",
        "new parameter",
        "precision",
        "mode",
        "mode of a part",
        "mode of a part without weights",
    ],
)
def test_a_change_is_noticed_and_named(model, change, spoil, words):
    spoil(model)
    assert change() is not None
    assert re.search(words, change())


HOOKS = {
    "forward pre": lambda module: module.register_forward_pre_hook(lambda *_: None),
    "forward": lambda module: module.register_forward_hook(lambda *_: None),
    "forward always": lambda m: m.register_forward_hook(lambda *_: None, always_call=True),
    "backward pre": lambda module: module.register_full_backward_pre_hook(lambda *_: None),
    "full backward": lambda module: module.register_full_backward_hook(lambda *_: None),
    "old backward": lambda module: module.register_backward_hook(lambda *_: None),
}


@pytest.mark.parametrize("kind", HOOKS)
@pytest.mark.parametrize("where", ["", "act", "head.1"])
def test_a_hook_of_any_kind_is_noticed_and_its_part_named(model, change, kind, where):
    handle = HOOKS[kind](model.get_submodule(where))
    assert f"left hooks on the model ({where or 'the model itself'})" in change()
    handle.remove()
    assert change() is None


def test_a_hook_that_is_gone_or_exchanged_is_noticed(model):
    handle = model.act.register_forward_hook(lambda *_: None)
    before = Snapshot.of(model)
    handle.remove()
    assert "hooks on the model (act)" in before.change(model)
    model.act.register_forward_hook(lambda *_: 0)
    assert "hooks on the model (act)" in before.change(model)


def test_a_part_that_was_added_or_taken_away_is_noticed(model, change):
    model.extra = nn.Identity()
    assert "parts" in change()
    del model.extra
    assert change() is None
    del model.act
    assert "parts" in change()


def test_a_part_that_was_exchanged_is_noticed(model, change):
    """Guided backpropagation is often written so: every ReLU becomes one with another gradient."""
    model.act = nn.LeakyReLU().eval()
    assert change() is not None
    assert "act" in change()


def test_a_part_whose_forward_was_exchanged_is_noticed(model, change):
    model.act.forward = lambda inputs: inputs
    assert change() is not None
    assert "act" in change()


def test_a_graph_that_was_recompiled_otherwise_is_noticed():
    model = prepare(nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(18, 2)))
    before = Snapshot.of(model)
    model.recompile()
    assert before.code[1] == model.code
    [relu] = [node for node in model.graph.nodes if node.target == "1"]
    relu.replace_all_uses_with(relu.args[0])
    model.graph.erase_node(relu)
    model.recompile()
    assert before.change(model) == "changed the graph of the model"
