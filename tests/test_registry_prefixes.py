"""Names with a prefix: made on demand, selected literally, known without an import."""

import subprocess
import sys
import types

import pytest

import attrcheck
from attrcheck.registry import Registry, RegistryError


@pytest.fixture
def things(monkeypatch):
    """A registry with two names of its own and two prefixes."""
    home = types.ModuleType("things_of_lib")
    home.resolve = lambda name: f"made from {name}"
    home.blurred = lambda name: f"{name}, blurred"
    monkeypatch.setitem(sys.modules, "things_of_lib", home)
    prefixes = {"lib": "things_of_lib", "blur": "things_of_lib:blurred"}
    registry = Registry("thing", lambda name, function: name, "nowhere", prefixes)
    registry.__dict__["_declared"] = {}
    registry("alpha")(len)
    registry("beta")(len)
    return registry


def test_a_prefixed_name_is_made_when_it_is_asked_for(things):
    assert things.get("lib:Class_2") == "made from Class_2"
    assert "lib:Class_2" in things
    assert list(things) == ["alpha", "beta"]


def test_a_prefix_may_name_a_function_of_its_module(things):
    assert things.get("blur:Class_2") == "Class_2, blurred"
    assert "blur:Class_2" in things


@pytest.mark.parametrize(
    ("patterns", "chosen"),
    [
        ("lib:Class", ["lib:Class"]),
        ("lib:B,beta,lib:A,lib:B", ["beta", "lib:B", "lib:A"]),
        ("*,lib:A", ["alpha", "beta", "lib:A"]),
        ("*", ["alpha", "beta"]),
        ("lib:A,!alpha", ["lib:A"]),
        ("a*,lib:A,!lib:A", ["alpha"]),
    ],
)
def test_select_passes_a_prefixed_name_through_only_if_it_is_asked_for(things, patterns, chosen):
    assert things.select(patterns) == chosen


@pytest.mark.parametrize("name", ["lib:*", "lib:A*", "lib:", "lib:a-b", "lib:a/../b", "lib:A:B"])
def test_after_a_prefix_comes_one_whole_name(things, name):
    assert name not in things
    for ask in (things.get, things.select):
        with pytest.raises(RegistryError, match="write one whole name after lib:"):
            ask(name)


def test_an_unknown_prefix_is_named_with_those_there_are(things):
    assert "lob:A" not in things
    for ask in (things.get, things.select):
        with pytest.raises(RegistryError, match=r"called 'lob:A'; prefixes are: lib:, blur:$"):
            ask("lob:A")
    with pytest.raises(RegistryError, match="prefixes are: none"):
        attrcheck.removal.get("captum:Lime")


def test_the_colon_stays_out_of_registered_names(things):
    with pytest.raises(RegistryError, match="must match"):
        things("lib:A")


def test_selecting_imports_nothing():
    code = (
        "import sys, attrcheck\n"
        "print(attrcheck.method.select('captum:Lime,gradcam:GradCAM,saliency'))\n"
        "print('gradcam:X' in attrcheck.method, sorted({'torch', 'captum'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "['saliency', 'captum:Lime', 'gradcam:GradCAM']\nTrue []\n"
