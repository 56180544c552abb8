"""Values that decide results: what methods hold, networks, protocols, and what is declared."""

import array
import io
import logging
import threading
from dataclasses import dataclass, field

import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.contracts import Protocol
from attrcheck.engine import keys
from attrcheck.engine.shards import key_of
from attrcheck.protocols.ablation import Ablation
from attrcheck.store.fingerprints import of_code, of_value
from tests.worlds import load


class Holder:
    """A method that holds a network, wrapped as deeply as one likes."""

    def __init__(self, network, depth):
        self.network = network
        for _ in range(depth):
            self.network = {"inside": [self.network]}

    def __call__(self, model, images, targets):
        return images.sum(1)


def test_every_weight_of_a_network_that_a_method_holds_is_noticed_however_deep():
    network = load("digits", "resnet", 2).network
    before = of_code(Holder(network, 10))
    assert of_code(Holder(network, 10)) == before
    tensors = [*network.parameters(), *network.buffers()]
    assert len(tensors) > 20
    for tensor in tensors:
        last = tensor.view(-1)[-1].clone()
        with torch.no_grad():
            tensor.view(-1)[-1] += 1
            assert of_code(Holder(network, 10)) != before
            tensor.view(-1)[-1] = last
    assert of_code(Holder(network, 10)) == before


def changed_slope(network):
    network[1].negative_slope = 0.2


def changed_attribute(network):
    network.temperature = 2.0


def changed_buffer(network):
    network[2].offset += 1


def changed_weight(network):
    network[0].weight.data[0, 0] += 1e-3


def changed_hook(network):
    network.register_forward_hook(lambda module, inputs, output: -output)


class Offset(nn.Module):
    """Has a buffer that is not saved with its state."""

    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(2), persistent=False)

    def forward(self, x):
        return x + self.offset


@pytest.mark.parametrize(
    "change",
    [changed_slope, changed_attribute, changed_buffer, changed_weight, changed_hook],
    ids=lambda change: change.__name__,
)
def test_whatever_a_network_computes_with_is_in_its_key(change):
    def network():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 2), nn.LeakyReLU(0.1), Offset())
        model.temperature = 1.0
        return model

    other = network()
    assert keys.of_network(network()) == keys.of_network(other)
    change(other)
    assert keys.of_network(network()) != keys.of_network(other)


@dataclass(frozen=True)
class Odd(Protocol):
    """A protocol whose repr says little of its settings."""

    weights: np.ndarray = field(default_factory=lambda: np.zeros(2000))
    hidden: float = field(default=1.0, repr=False)
    higher_is_better = True

    def __repr__(self):
        return "Odd()"

    def observe(self, model, batch, maps, shared):
        raise NotImplementedError

    def reduce(self, rows):
        raise NotImplementedError


class Handmade:
    """A protocol that is not a dataclass: its repr has an address, another in every process."""

    removal = None

    def __init__(self, scale):
        self.scale = scale


def test_a_protocol_that_is_not_a_dataclass_counts_by_its_attributes():
    one, same, other = Handmade(1.0), Handmade(1.0), Handmade(2.0)
    assert repr(one) != repr(same)
    assert keys.of_settings(one) == keys.of_settings(same) != keys.of_settings(other)


def test_fields_of_a_protocol_count_by_value_whatever_its_repr_says():
    weights = np.zeros(2000)
    weights[1000] = 1e-9
    settings = {keys.of_settings(odd) for odd in (Odd(), Odd(weights), Odd(hidden=2.0))}
    assert len(settings) == 3
    assert keys.of_settings(Odd()) == keys.of_settings(Odd())


def test_the_contents_of_a_training_split_count(tiny):
    def split(value):
        return lambda: (torch.full((4, 2, 5, 5), value), torch.zeros(4, dtype=torch.int64))

    one, same, other = (tiny.dataset(training=split(value)) for value in (0.1, 0.1, 0.2))
    assert keys.of_training(one) == keys.of_training(same) != keys.of_training(other)
    assert keys.of_training(tiny.dataset()) == ""


def test_a_training_split_is_made_once_to_be_hashed(tiny):
    made = []

    def split():
        made.append(True)
        return torch.zeros(4, 2, 5, 5), torch.zeros(4, dtype=torch.int64)

    data = tiny.dataset(training=split)
    assert keys.of_training(data) == keys.of_training(data.head(2)) != ""
    assert made == [True]


def test_what_a_method_declares_counts_by_its_contents(tmp_path, tiny, monkeypatch):
    path = tmp_path / "table.csv"

    def key_with(*depends):
        return key_of(tiny.method(lambda *given: None, depends=depends))

    plain = key_with()
    missing = key_with(f"file:{path}")
    path.write_text("1")
    one = key_with(f"file:{path}")
    path.write_text("2")
    assert len({plain, missing, one, key_with(f"file:{path}")}) == 4
    monkeypatch.setenv("MY_FLAG", "a")
    flagged = key_with("env:MY_FLAG")
    monkeypatch.setenv("MY_FLAG", "b")
    assert key_with("env:MY_FLAG") != flagged
    assert key_with("package:numpy") != plain
    with pytest.raises(attrcheck.errors.AttrcheckError, match="file:PATH"):
        key_with("table.csv")


@pytest.mark.parametrize("kind", ["dataset", "model", "protocol", "removal"])
def test_what_anything_else_declares_makes_its_records_stale(tiny, monkeypatch, kind):
    own = {"depends": ["env:MY_FLAG"]}
    attrcheck.removal("flagged", **(own if kind == "removal" else {}))(
        lambda images, keep: images * keep[:, None]
    )
    attrcheck.dataset("tiny_flagged", **(own if kind == "dataset" else {}))(
        lambda: tiny.dataset("tiny_flagged")
    )
    attrcheck.model("flagged", datasets="tiny*", **(own if kind == "model" else {}))(tiny.network)
    attrcheck.protocol("flagged", **(own if kind == "protocol" else {}))(
        lambda: Ablation(True, False, removal="flagged")
    )
    counts = []
    for value in ("a", "a", "b"):
        monkeypatch.setenv("MY_FLAG", value)
        tiny.restart()
        tiny.run("tiny_flagged-flagged-flagged", methods=("slope",))
        counts.append(len(list(tiny.folder.glob("records/*/slope-*"))))
    assert counts == [1, 1, 2]


HELD = {
    "logger": lambda: logging.getLogger("attrcheck.test"),
    "file": lambda: io.StringIO("text"),
    "array": lambda: array.array("d", [1.0, 2.0]),
    "sparse": lambda: torch.eye(3).to_sparse(),
    "meta": lambda: torch.empty(3, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "lock": threading.Lock,
    "generator": lambda: (number for number in range(3)),
    "rng": lambda: np.random.default_rng(0),
    "objects": lambda: np.array([{"a": 1}, None], dtype=object),
    "bytes": lambda: bytearray(b"abc"),
}


@pytest.mark.filterwarnings("ignore:.*quantize.*deprecated")
@pytest.mark.parametrize("kind", HELD)
def test_whatever_a_method_holds_it_has_a_key(kind):
    assert of_value([HELD[kind]()]) == of_value([HELD[kind]()])


def test_values_of_odd_kinds_are_told_apart():
    assert of_value(array.array("d", [1.0])) != of_value(array.array("d", [2.0]))
    assert of_value(torch.eye(3).to_sparse()) != of_value(2 * torch.eye(3).to_sparse())
    assert of_value(np.random.default_rng(0)) != of_value(np.random.default_rng(1))
    one, other = (np.array([value], dtype=object) for value in ("a", "b"))
    assert of_value(one) != of_value(other)
