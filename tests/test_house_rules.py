"""The rules of the house on small packages that break them, or do not."""

import pytest

from tests.test_house import LINES, cycle, lazy, private, too_long, upward, worded


@pytest.fixture
def house(tmp_path):
    """Writes a small package: house({"engine/keys.py": "..."}) returns its root."""

    def build(files):
        for name, text in files.items():
            path = tmp_path / "src/attrcheck" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return build


@pytest.mark.parametrize(
    ("file", "text", "culprit"),
    [
        ("checks/seed.py", "from attrcheck.engine import keys", "attrcheck.engine"),
        ("checks/seed.py", "def f():\n    import attrcheck.engine", "attrcheck.engine"),
        ("store/a.py", "from attrcheck.tensors.b import c", "attrcheck.tensors.b"),
        ("graph/a.py", "from ..models import model", "attrcheck.models"),
        ("gate.py", "from attrcheck import plugin", "attrcheck"),
        (
            "methods/a.py",
            "if TYPE_CHECKING:\n    from attrcheck.engine.pairs import Pair",
            "attrcheck.engine.pairs",
        ),
    ],
)
def test_an_import_of_a_room_above_or_beside_is_named(house, file, text, culprit):
    (line,) = upward(house({file: text, "tensors/b.py": ""}))
    assert line.startswith(f"src/attrcheck/{file}:{len(text.splitlines())}: ")
    assert f"imports {culprit}, but" in line


def test_a_room_without_a_floor_is_named(house):
    (line,) = upward(house({"cellar/a.py": "from attrcheck.errors import suggest"}))
    assert "cellar has no floor" in line


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("metarank.py", "from attrcheck.ranks import spearman"),
        ("cli.py", "from attrcheck.plugin.options import KINDS"),
        ("plugin/items.py", "from attrcheck.engine.lab import Lab"),
        ("methods/lrp.py", "from attrcheck.methods._rules import rule"),
    ],
)
def test_imports_that_point_down_pass(house, file, text):
    root = house({file: text, "ranks.py": ""})
    assert upward(root) == private(root) == []


@pytest.mark.parametrize(
    "text",
    ["from attrcheck.store._files import write", "from attrcheck.store import _files",
     "from attrcheck.store.entries import _write", "import attrcheck.store._files"],
)  # fmt: skip
def test_private_imports_are_named(house, text):
    (line,) = private(house({"engine/keys.py": text, "store/_files.py": ""}))
    assert line.startswith("src/attrcheck/engine/keys.py:1: ")


def test_a_cycle_is_named_even_if_a_function_hides_it(house):
    files = {"a.py": "from attrcheck import b", "b.py": "def f():\n    from attrcheck import a"}
    (line,) = cycle(house(files))
    assert "attrcheck.a" in line
    assert "attrcheck.b" in line


def test_hidden_imports_are_named_unless_they_have_a_reason(house):
    hidden = "def f():\n    import numpy as np\n    import json\n    import_module('torch')\n"
    first, second = lazy(house({"contracts.py": hidden}))
    assert first.startswith("src/attrcheck/contracts.py:3: imports json inside")
    assert second.startswith("src/attrcheck/contracts.py:4: imports torch inside")


def test_long_files_and_unwanted_words_are_named(house):
    root = house({"gate.py": "x = 1\n" * (LINES + 1), "cli.py": "# The Judges\n"})
    (line,) = too_long(root)
    assert "src/attrcheck/gate.py: 351 lines" in line
    (line,) = worded(root, "judg")
    assert line.startswith("src/attrcheck/cli.py:1: ")
