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


@pytest.mark.parametrize("name", ["lib:*", "lib:A*", "lib:", "lib:a/?/b"])
def test_after_a_prefix_comes_one_whole_name(things, name):
    assert name not in things
    for ask in (things.get, things.select):
        with pytest.raises(RegistryError, match="write one whole name after lib:"):
            ask(name)


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("lib:a-b", "lib:a_b", "a-b"),
        ("lib:org/a-b.c@x", "lib:org.a_b.c.x", "org/a-b.c@x"),
        ("lib:A:B", "lib:A_B", "A:B"),
        ("lib:A[1]", "lib:A_1_", "A[1]"),
        ("mine=lib:a-b", "mine", "a-b"),
        ("My_2=lib:a=b", "My_2", "a=b"),
        (" mine = lib:A", "mine", "A"),
    ],
)
def test_a_spec_is_known_by_its_alias_or_by_an_id_that_has_no_hyphen(things, text, name, rest):
    assert things.select(text) == [name]
    assert name in things
    assert things.get(name) == f"made from {rest}"
    assert list(things) == ["alpha", "beta"]
    assert not things.is_own(name)
    assert str(things.spec_of(name)) == f"lib:{rest}"


def test_a_name_bound_once_can_be_selected_by_itself_but_is_not_listed(things):
    things.select("mine=lib:A")
    assert things.get("mine") == "made from A"
    assert things.select("*") == ["alpha", "beta"]
    assert things.select("*,mine=lib:A,!alpha") == ["beta", "mine"]
    assert things.select("lib:a-b,mine=lib:A,!lib:a-b") == ["mine"]


def test_a_name_of_a_table_is_listed_and_the_command_line_may_give_it_anew(things):
    things.bind("listed", "lib:A")
    assert list(things) == ["alpha", "beta", "listed"]
    assert things.select("l*") == ["listed"]
    assert things.get("listed") == "made from A"
    things.select("listed=lib:B")
    assert things.get("listed") == "made from B"


@pytest.mark.parametrize(
    ("patterns", "words"),
    [
        ("lib:a-b,lib:a_b", "lib:a-b and lib:a_b would both be called 'lib:a_b'; .*NAME=lib:a_b"),
        ("x=lib:A,x=lib:B", "lib:A and lib:B would both be called 'x'"),
        ("alpha=lib:A", "already a thing called 'alpha'; give lib:A a name of its own"),
        ("x=A", "'A' has no prefix that a thing can have; prefixes are: lib:, blur:"),
        ("x=lob:A", "'lob:A' has no prefix"),
        ("listed=lib:A,lib:*", "write one whole name"),
    ],
)
def test_two_specs_of_one_name_and_aliases_of_nothing_are_refused(things, patterns, words):
    with pytest.raises(RegistryError, match=words):
        things.select(patterns)


def test_an_id_that_a_table_has_given_to_something_else_asks_for_an_alias(things):
    things.prefixes["folder"] = "things_of_lib"
    things.bind("val", "folder:/data/val")
    assert things.select("folder:/data/val") == ["val"]
    with pytest.raises(RegistryError, match="a table calls folder:/data/val 'val'; write NAME="):
        things.select("folder:/other/val")
    assert things.select("other=folder:/other/val") == ["other"]


def test_a_path_without_a_prefix_gets_a_hint(things):
    things.prefixes["folder"] = "things_of_lib"
    with pytest.raises(RegistryError, match="write folder:/data/val for a folder"):
        things.select("/data/val")
    with pytest.raises(RegistryError, match="write folder:/data/val for a folder of pictures"):
        things.select("x=/data/val")


@pytest.mark.parametrize("name", ["a-b", "", "1", "a/b", "lib:A"])
def test_a_table_gives_only_names_that_an_id_can_have(things, name):
    with pytest.raises(RegistryError, match="must match"):
        things.bind(name, "lib:A")


@pytest.mark.parametrize("text", ["A", "x=lib:A", "lob:A", ""])
def test_a_table_names_only_specs(things, text):
    with pytest.raises(RegistryError, match=r"thing 'x'.* prefixes are"):
        things.bind("x", text)


def test_options_of_a_table_reach_what_makes_the_thing(things, monkeypatch):
    home = sys.modules["things_of_lib"]
    monkeypatch.setattr(home, "resolve", lambda name, size=1: f"{name} of {size}")
    things.bind("x", "lib:A", {"size": 3})
    assert things.get("x") == "A of 3"
    things.select("x=lib:A")
    assert things.get("x") == "A of 3"  # the same spec: its options stay
    things.bind("y", "lib:A", {"siz": 3})
    with pytest.raises(RegistryError, match=r"thing 'y': lib takes no option 'siz'; .*mean size"):
        things.get("y")


def test_a_scratch_forgets_what_was_bound(things):
    with things.scratch():
        things.bind("x", "lib:A")
        things.select("y=lib:A")
    assert list(things) == ["alpha", "beta"]
    assert "x" not in things
    assert "y" not in things


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
