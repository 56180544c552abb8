"""BagNets see patches only: receptive fields, and the public full-size one from a file."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from attrcheck.graph.preparing import prepare
from attrcheck.graph.receptive import Field, receptive_field
from attrcheck.methods import method
from attrcheck.models.bagnet33 import BagNet33, bagnet33
from attrcheck.training.weights import WeightsError
from tests.worlds import enliven, random_family, smooth_images


def last(model):
    return [node for node in model.graph.nodes if node.op == "call_module"][-1]


def influence(model, node, side, place):
    """The rows that move a place of a node's map, found by derivatives."""
    inputs = torch.randn(1, 3, side, side, dtype=torch.float64).requires_grad_()

    class Until(torch.fx.Interpreter):
        def run_node(self, n):
            value = super().run_node(n)
            if n is node:
                self.value = value
            return value

    runner = Until(model)
    runner.run(inputs)
    (gradient,) = torch.autograd.grad(runner.value[0, :, place, place].sum(), inputs)
    rows = gradient.abs().sum((0, 1, 3)).nonzero()[:, 0]
    return int(rows.min()), int(rows.max())


def test_the_embedded_one_sees_17_pixels():
    network = random_family("bagnet")
    model = prepare(network)
    evidence = next(n for n in model.graph.nodes if str(n.target) == "6")
    assert receptive_field(model, evidence) == Field(4, -8, 8)
    assert influence(model.double(), evidence, 32, 4) == (8, 24)


def test_a_pixel_outside_of_a_patch_has_no_influence():
    network, images = random_family("bagnet"), smooth_images(1)
    changed = images.clone()
    changed[:, :, 21, 13] += 5
    with torch.no_grad():
        before, after = network[:7](images), network[:7](changed)
    moved = (before != after).any(1)[0].nonzero()
    # Places 4i - 8 ... 4i + 8 hold row 21 and column 13.
    assert moved[:, 0].unique().tolist() == [4, 5, 6, 7]
    assert moved[:, 1].unique().tolist() == [2, 3, 4, 5]


layers = st.lists(
    st.tuples(st.integers(1, 4), st.integers(1, 2), st.integers(0, 1), st.integers(1, 2)),
    min_size=1,
    max_size=3,
)


@settings(max_examples=15)
@given(layers)
def test_receptive_fields_of_random_stacks(windows):
    torch.manual_seed(0)
    stack = nn.Sequential()
    for size, stride, padding, dilation in windows:
        stack.append(nn.Conv2d(3, 3, size, stride, padding, dilation, bias=False))
        stack.append(nn.Tanh())
    model = prepare(stack).double()
    field = receptive_field(model, last(model))
    assert influence(model, last(model), 96, 3) == (  # the longest stack leaves 7 places
        max(0, 3 * field.step + field.low),
        3 * field.step + field.high,
    )


class Odd(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind
        self.conv, self.wide = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, (3, 1))
        self.strided, self.pool = nn.Conv2d(3, 3, 1, 2), nn.AdaptiveAvgPool2d(1)
        self.end = nn.Conv2d(3, 2, 1)

    def forward(self, x):
        y = self.conv(x)
        if self.kind == "gate":
            y = y * self.pool(y).sigmoid()
        elif self.kind == "oblong":
            y = self.wide(y)
        elif self.kind == "scales":
            y = self.strided(y)[:, :, :1, :1] + y[:, :, :1, :1]
        elif self.kind == "shifted":
            y = y[:, :, 1:]
        if self.kind == "rows":
            return self.end(y).mean(2).flatten(1)
        return self.end(y).mean((2, 3))


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("", None),
        ("gate", "AdaptiveAvgPool2d may see the whole image (at pool)"),
        ("oblong", "a window has other rows than columns (at wide)"),
        ("scales", "maps of different scales meet (at add)"),
        ("rows", "the logits are not a mean over places of evidence for the classes"),
        ("shifted", "getitem() may see the whole image (at getitem)"),
    ],
)
def test_the_evidence_of_other_networks_is_declined_with_the_reason(kind, reason):
    assert method.get("bagnet_evidence").not_applicable(prepare(Odd(kind))) == reason


@pytest.fixture(scope="module")
def full_size():
    torch.manual_seed(0)
    return enliven(BagNet33(10), 48)


def as_published(network):
    """The state under the names of the public file, whose classifier is a linear layer."""
    state = {key: value.clone() for key, value in network.state_dict().items()}
    state["fc.weight"] = state["fc.weight"].flatten(1)
    # It was saved by a torch that did not count batches yet.
    return {key: value for key, value in state.items() if "num_batches" not in key}


def test_the_full_size_one_from_a_file(tmp_path, full_size):
    images = smooth_images(2, 48)
    torch.save({"state_dict": as_published(full_size)}, tmp_path / "public.pth.tar")
    save_file(as_published(full_size), tmp_path / "public.safetensors")
    with torch.no_grad():
        wanted = full_size(images)
    for path in tmp_path.iterdir():
        loaded = bagnet33(path)
        assert not loaded.training
        with torch.no_grad():
            assert torch.equal(loaded(images), wanted)


def test_the_full_size_one_sees_33_pixels_and_explains_itself(full_size):
    model, images, targets = prepare(full_size), smooth_images(2, 48), torch.tensor([1, 2])
    with torch.no_grad():
        wanted, logits = full_size(images), model(images)
    assert torch.allclose(logits, wanted, rtol=1e-3, atol=1e-4)
    evidence = next(n for n in model.graph.nodes if n.target == "fc")
    assert receptive_field(model, evidence) == Field(8, 0, 32)
    explain = method.get("bagnet_evidence")
    assert explain.not_applicable(model) is None
    total = explain.attribute(model, images, targets).sum((1, 2))
    assert torch.allclose(total, logits.gather(1, targets[:, None])[:, 0], rtol=1e-3)


def test_the_size_is_that_which_is_published():
    """A change of the layers would show here; the public file itself was not at hand."""
    with torch.device("meta"):
        count = sum(part.numel() for part in BagNet33(1000).parameters())
    assert count == 18_310_184


def test_other_files_are_told_apart(tmp_path, full_size):
    state = as_published(full_size)
    state["extra.weight"] = torch.zeros(1)
    torch.save(state, tmp_path / "extra.pth")
    with pytest.raises(WeightsError, match=r"(?s)extra.pth does not fit.*extra.weight"):
        bagnet33(tmp_path / "extra.pth")
    (tmp_path / "broken.safetensors").write_bytes(b"no weights")
    with pytest.raises(WeightsError, match=r"cannot read weights from .*broken.safetensors"):
        bagnet33(tmp_path / "broken.safetensors")
