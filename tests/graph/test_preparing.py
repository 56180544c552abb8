"""Prepared networks: the same output, in a graph that rules can act on."""

import copy

import pytest
import torch
from torch import fx, nn
from torch.nn import functional as F

from attrcheck.graph.kinds import Add, Concat, Mean, Multiply
from attrcheck.graph.landmarks import attentions
from attrcheck.graph.preparing import NotTraceable, prepare
from attrcheck.methods import method as methods
from tests.graph.prepared import assert_ready, assert_same_output, kinds, modules
from tests.worlds import FAMILIES, enliven, random_family, smooth_images


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_computes_the_same(family):
    network = random_family(family)
    prepared = prepare(network)
    assert_same_output(network, prepared, smooth_images(4))
    assert_ready(prepared)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_network_stays_as_it_was(family):
    network = random_family(family).train()
    before = copy.deepcopy(network.state_dict())
    prepare(network)
    assert all(part.training for part in network.modules())
    assert all(part.requires_grad for part in network.parameters())
    after = network.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def traced(network, module_kind, *functions):
    """How often the untouched graph calls a kind of module or one of the functions."""
    nodes = fx.symbolic_trace(network).graph.nodes
    called = [network.get_submodule(node.target) for node in nodes if node.op == "call_module"]
    by_name = [node for node in nodes if getattr(node.target, "__name__", "") in functions]
    return sum(type(part) is module_kind for part in called) + len(by_name)


@pytest.mark.parametrize(
    ("family", "kinds_and_functions"),
    [
        ("resnet", [(nn.ReLU,), (Add, "add")]),
        ("vgg", [(nn.ReLU,), (nn.MaxPool2d,)]),
        ("inception", [(nn.ReLU,), (Concat, "cat")]),
        ("efficientnet", [(nn.SiLU,), (nn.Sigmoid,), (Multiply, "mul"), (Add, "add")]),
        ("densenet", [(nn.ReLU, "relu"), (Concat, "cat")]),
    ],
)
def test_what_rules_act_on_is_there(family, kinds_and_functions):
    network = random_family(family)
    found = kinds(prepare(network))
    for kind, *functions in kinds_and_functions:
        assert found.count(kind) == traced(network, kind, *functions) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_no_norm_directly_follows_a_convolution(family):
    prepared = prepare(random_family(family))
    norms = 0
    for node in prepared.graph.nodes:
        if node.op == "call_module" and type(prepared.get_submodule(node.target)) is nn.BatchNorm2d:
            norms += 1
            before = node.args[0]
            seen_by_others = len(before.users) > 1
            assert seen_by_others or type(prepared.get_submodule(before.target)) is not nn.Conv2d
    assert (norms > 0) == (family == "densenet")


class KitchenSink(nn.Module):
    """All the ways to hide an operation from whoever looks at modules."""

    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, 6, 3, padding=1), nn.Conv2d(6, 6, 3, padding=1)
        self.norm = nn.BatchNorm2d(6)
        self.relu = nn.ReLU(inplace=True)
        self.drop, self.same = nn.Dropout(0.5), nn.Identity()
        self.scale = nn.Parameter(torch.full((6, 1, 1), 1.5))
        self.head = nn.Linear(24, 5)

    def forward(self, x):
        x = self.relu(self.norm(self.conv1(x)))
        y = self.drop(F.relu6(self.conv2(x), inplace=True))
        y = self.relu(y - 0.5)
        y = torch.sigmoid(F.adaptive_avg_pool2d(y, 1)).expand_as(x) * x
        y = torch.mul(y, F.leaky_relu(y - 0.3, 0.2)) + x.tanh()
        y = F.hardswish(y) * self.scale / 2 + 1
        z = F.elu(torch.add(y, x), alpha=0.5)
        y = torch.cat([F.max_pool2d(y, 2), F.avg_pool2d(z, 2)], dim=1).unsqueeze(0).squeeze(0)
        z = F.gelu(y).mean((-2, -1), keepdim=True).squeeze(3).squeeze(2)
        y = torch.concat((y.mean([2, 3]), z), 1)
        y = F.dropout(y, 0.5, self.training)
        return self.head(self.same(y.view(y.size(0), y.size(1) * 1)))


def test_hidden_operations_become_modules():
    network = enliven(KitchenSink(), 8)
    prepared = prepare(network)
    assert_same_output(network, prepared, smooth_images(3, 8))
    assert_ready(prepared)
    assert kinds(prepared) == [
        *(nn.Conv2d, nn.ReLU, nn.Conv2d, nn.ReLU6, nn.ReLU, nn.AdaptiveAvgPool2d, nn.Sigmoid),
        *(Multiply, nn.LeakyReLU, Multiply, nn.Tanh, Add, nn.Hardswish, Add, nn.ELU),
        *(nn.MaxPool2d, nn.AvgPool2d, Concat, nn.GELU, Mean, Mean, Concat, nn.Linear),
    ]
    products = [part for part in modules(prepared) if isinstance(part, Multiply)]
    assert [product.gate for product in products] == [0, None]
    plain = [node for node in prepared.graph.nodes if node.op == "call_function"]
    names = sorted(node.target.__name__ for node in plain)
    assert names == ["add", "mul", "mul", "sub", "sub", "truediv"]
    twice = prepare(prepared)
    assert kinds(twice) == kinds(prepared)
    assert_same_output(network, twice, smooth_images(3, 8))


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.relu = nn.Conv2d(3, 2, 1), nn.ReLU()

    def forward(self, x):
        x = self.relu(self.conv(x))
        return x.mean((2, 3)) if x.sum() > 0 else x.amax((2, 3))


def test_a_network_that_cannot_be_traced_is_copied_with_a_warning():
    network = Branches().train()
    with pytest.warns(NotTraceable, match=r"Branches cannot be traced \(TraceError: .*control"):
        prepared = prepare(network)
    assert isinstance(prepared, Branches)
    assert prepared is not network
    assert not prepared.training
    assert not any(part.requires_grad for part in prepared.parameters())
    assert network.training


TORCHVISION = ["resnet18", "resnet50", "vgg19", "efficientnet_b2", "densenet121", "inception_v3"]


@pytest.mark.slow
@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvision(name):
    from attrcheck.adapters.vision import torchvision

    torch.manual_seed(0)
    settings = {"aux_logits": False, "init_weights": True} if name == "inception_v3" else {}
    network = torchvision.models.get_model(name, weights=None, **settings)
    side = 96 if name == "inception_v3" else 64
    network = enliven(network, side).double()  # deep random networks blow up rounding errors
    prepared = prepare(network)
    assert_same_output(network, prepared, smooth_images(2, side).double())
    assert_ready(prepared)
    functions = [node for node in prepared.graph.nodes if node.op == "call_function"]
    assert {node.target for node in functions} <= {torch.flatten}


@pytest.mark.slow
def test_the_checkpointed_densenet_is_seen_through():
    from attrcheck.adapters.vision import torchvision

    network = enliven(torchvision.models.densenet121(memory_efficient=True), 64)
    prepared = prepare(network)
    assert_same_output(network, prepared, smooth_images(2, 64))
    assert kinds(prepared).count(nn.ReLU) == 121


class Turned(nn.Module):
    """Squares what it sees, behind `x.mT`, which is written like a question for a size."""

    def __init__(self):
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 2)

    def forward(self, x):
        tokens = self.conv(x).flatten(2).mT
        return self.head((tokens * tokens).sum(1))


def test_what_follows_a_transposed_view_is_seen():
    network = Turned().eval()
    prepared = prepare(network)
    assert_same_output(network, prepared, smooth_images(2, 6))
    assert Multiply in kinds(prepared)
    for name in ("lrp", "deeplift", "guided_backprop"):
        assert methods.get(name).not_applicable(prepared)


def test_a_norm_by_the_batch_has_no_rule():
    norm = nn.BatchNorm2d(4, track_running_stats=False)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), norm, nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
    for name in ("lrp", "deeplift"):
        assert "normalises by the batch" in methods.get(name).not_applicable(prepare(network))


class Tokens(nn.Module):
    """Attends in one of the ways that torch offers."""

    def __init__(self, how):
        super().__init__()
        self.how, self.cut, self.head = how, nn.Conv2d(3, 8, 2, 2), nn.Linear(8, 3)
        self.attend = nn.MultiheadAttention(8, 2, batch_first=True)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True)

    def forward(self, x):
        x = self.cut(x).flatten(2).transpose(1, 2)
        mask = torch.eye(16) < 1 if self.how == "mask" else None
        if self.how == "layer":
            x = self.layer(x)
        elif self.how == "positional":
            x = self.attend(x, x, x, None, False)[0]
        else:
            x = self.attend(x, x, x, attn_mask=mask, key_padding_mask=None, need_weights=False)[0]
        return self.head(x.mean(1))


@pytest.mark.parametrize("how", ["plain", "positional", "mask", "layer"])
def test_attention_is_opened_where_it_can_be(how):
    network, images = Tokens(how).eval(), smooth_images(2, 8)
    prepared = prepare(network)
    assert_same_output(network, prepared, images)
    assert bool(attentions(prepared)) is (how in ("plain", "positional"))
