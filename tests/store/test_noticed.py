"""What a key must notice: edits that change results, wherever they are made."""

import array
import io
import json
import logging
import subprocess
import sys
import textwrap
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
from attrcheck.store import closures
from attrcheck.store.fingerprints import of_code, of_value
from tests.worlds import load

ASK = """
import json, sys
sys.path.insert(0, sys.argv[1])
import first
from attrcheck.store.fingerprints import of_code
print(json.dumps(of_code(first.method)))
"""


def key(folder, files):
    """The key of `method` in first.py, in a process of its own."""
    for name, text in files.items():
        (folder / name).write_text(textwrap.dedent(text))
    command = [sys.executable, "-B", "-c", ASK, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


EDITS = {
    "a default that a factory in another file sets": (
        {
            "first.py": "from factory import make\nmethod = make()\n",
            "factory.py": """
                def make():
                    def method(images, scale=2.0, *, shift=1.0):
                        return images * scale + shift
                    return method
            """,
        },
        ("factory.py", "shift=1.0", "shift=2.0"),
    ),
    "a method inherited from another file": (
        {
            "first.py": """
                from base import Base
                class Method(Base):
                    def __call__(self): return self.inner()
                method = Method()
            """,
            "base.py": "class Base:\n    def inner(self): return 1\n",
        },
        ("base.py", "return 1", "return 2"),
    ),
    "an attribute inherited from another file": (
        {
            "first.py": """
                from base import Base
                class Method(Base):
                    def __call__(self): return self.scale
                method = Method()
            """,
            "base.py": "class Base:\n    scale = 1\n",
        },
        ("base.py", "scale = 1", "scale = 2"),
    ),
    "a class made by type()": (
        {
            "first.py": """
                def call(self): return self.scale
                method = type("Method", (), {"__call__": call, "scale": 1})()
            """
        },
        ("first.py", '"scale": 1', '"scale": 2'),
    ),
    "the function in a class made by type()": (
        {
            "first.py": """
                def call(self): return 1
                method = type("Method", (), {"__call__": call})()
            """
        },
        ("first.py", "return 1", "return 2"),
    ),
    "a slot": (
        {
            "first.py": """
                class Method:
                    __slots__ = ("scale",)
                    def __init__(self, scale): self.scale = scale
                    def __call__(self): return self.scale
                method = Method(1)
            """
        },
        ("first.py", "Method(1)", "Method(2)"),
    ),
    "a global that another file sets": (
        {
            "first.py": "SCALE = 1\ndef method(): return SCALE\nimport sets\n",
            "sets.py": "import first\nfirst.SCALE = 5\n",
        },
        ("sets.py", "= 5", "= 6"),
    ),
    "a function attribute that another file sets": (
        {
            "first.py": "def method(): return method.scale\nimport sets\n",
            "sets.py": "import first\nfirst.method.scale = 5\n",
        },
        ("sets.py", "= 5", "= 6"),
    ),
    "a module imported by its name": (
        {
            "first.py": """
                import importlib
                def method(): return importlib.import_module("helper").help()
            """,
            "helper.py": "def help(): return 1\n",
        },
        ("helper.py", "return 1", "return 2"),
    ),
    "a table that is filled after its definition": (
        {
            "first.py": """
                TABLE = {}
                TABLE.update(scale=1)
                def method(): return TABLE["scale"]
            """
        },
        ("first.py", "scale=1", "scale=2"),
    ),
    "a decorator": (
        {
            "first.py": """
                from wrapping import twice
                @twice
                def method(): return 1
            """,
            "wrapping.py": """
                import functools
                def twice(function):
                    @functools.wraps(function)
                    def wrapper(): return 2 * function()
                    return wrapper
            """,
        },
        ("wrapping.py", "2 * function()", "3 * function()"),
    ),
    "a function under a decorator": (
        {
            "first.py": """
                import functools
                def twice(function):
                    @functools.wraps(function)
                    def wrapper(): return 2 * function()
                    return wrapper
                @twice
                def method(): return 1
            """
        },
        ("first.py", "return 1", "return 2"),
    ),
    "a conditional definition": (
        {
            "first.py": """
                try:
                    import no_such_library
                except ImportError:
                    def helper(): return 1
                def method(): return helper()
            """
        },
        ("first.py", "return 1", "return 2"),
    ),
    "a star import": (
        {"first.py": "from helper import *\ndef method(): return help()\n",
         "helper.py": "def help(): return 1\n"},
        ("helper.py", "return 1", "return 2"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_is_noticed(tmp_path, edit):
    files, (name, old, new) = EDITS[edit]
    before = key(tmp_path, files)
    assert key(tmp_path, files) == before
    assert old in files[name]
    assert key(tmp_path, files | {name: files[name].replace(old, new)}) != before


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


def test_the_version_of_a_library_that_a_method_uses_is_noticed(monkeypatch):
    def method(model, images, targets):
        return np.abs(images)

    def same(model, images, targets):
        return np.abs(images)

    same.__code__ = method.__code__
    before = of_code(method)
    monkeypatch.setattr(closures, "version", lambda library: f"{library} 99.0")
    assert of_code(same) != before


def test_a_compiled_module_of_the_project_counts_by_its_bytes(tmp_path, monkeypatch):
    binary = tmp_path / "kernels.so"
    module = type(sys)("kernels")
    module.__file__ = str(binary)
    monkeypatch.setitem(sys.modules, "kernels", module)
    (tmp_path / "uses_kernels.py").write_text("import kernels\ndef method(): kernels.run()\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = []
    for content in (b"one", b"one", b"two"):
        binary.write_bytes(content)
        monkeypatch.delitem(sys.modules, "uses_kernels", raising=False)
        found.append(of_code(__import__("uses_kernels").method))
    assert found[0] == found[1] != found[2]


@pytest.mark.usefixtures("registries")
def test_a_method_that_asks_for_another_one_by_name_notices_its_change():
    def outer(model, images, targets):
        return attrcheck.method.get("inner_one").attribute(model, images, targets)

    def again(model, images, targets):
        return attrcheck.method.get("inner_one").attribute(model, images, targets)

    with attrcheck.method.scratch():
        attrcheck.method("inner_one")(lambda model, images, targets: images.sum(1))
        before = of_code(outer)
    again.__code__ = outer.__code__
    attrcheck.method("inner_one")(lambda model, images, targets: -images.sum(1))
    assert of_code(again) != before


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
