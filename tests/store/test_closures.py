"""How much code is in a key: the files that methods and protocols reach, printed and bounded.

pytest tests/store/test_closures.py -k table -s
"""

from pathlib import Path

import pytest

import attrcheck
from attrcheck.methods import method
from attrcheck.protocols import protocol
from attrcheck.removal import removal
from attrcheck.store.fingerprints import closure_of

DUMMY, METHOD, PROTOCOL = 5, 12, 10
"""The most files that each may reach."""
ROOT = Path(attrcheck.__file__).parent


def modules_of(*things):
    """The modules of attrcheck that these functions and classes reach, by name."""
    files = {file for thing in things for file in closure_of(thing).files}
    parts = (Path(file).relative_to(ROOT.parent).with_suffix("").parts for file in files)
    return {".".join(part for part in parts if part != "__init__") for parts in parts}


def modules_of_method(name):
    return modules_of(method.get(name).attribute)


def modules_of_protocol(name):
    """Those that decide its rows: its own, those of what it shares and of its removal."""
    made = protocol.get(name).make()
    things = [type(made)]
    if made.shared:
        things.append(type(made.shared))
    if chosen := getattr(made, "removal", None):
        things.append(removal.get(chosen).remove)
    return modules_of(*things)


def built_in(registry):
    return [name for name in registry if not registry.is_own(name)]


@pytest.mark.parametrize("name", built_in(method))
def test_a_method_reaches_few_files(name):
    modules = modules_of_method(name)
    assert len(modules) <= (DUMMY if method.get(name).dummy else METHOD), sorted(modules)


@pytest.mark.parametrize("name", built_in(method))
def test_a_method_reaches_only_the_rooms_below_it(name):
    rooms = {module.split(".")[1] for module in modules_of_method(name)}
    assert rooms <= {"errors", "store", "tensors", "graph", "methods"}


@pytest.mark.parametrize("name", built_in(protocol))
def test_the_rows_of_a_protocol_reach_few_files(name):
    modules = modules_of_protocol(name)
    assert len(modules) <= PROTOCOL, sorted(modules)


@pytest.mark.parametrize("name", built_in(protocol))
def test_the_rows_of_a_protocol_reach_only_the_rooms_below_it(name):
    rooms = {module.split(".")[1] for module in modules_of_protocol(name)}
    assert rooms <= {"contracts", "ranks", "store", "tensors", "removal", "protocols"}


def test_an_absolute_variant_reaches_what_its_base_reaches():
    assert modules_of_method("smoothgrad_abs") >= modules_of_method("smoothgrad")
    assert "attrcheck.methods.noise" in modules_of_method("smoothgrad")


def test_the_table_of_all_closures():
    closures = {name: modules_of_method(name) for name in built_in(method)}
    closures |= {name: modules_of_protocol(name) for name in built_in(protocol)}
    for name, modules in sorted(closures.items(), key=lambda item: (len(item[1]), item[0])):
        places = (module.removeprefix("attrcheck.") for module in sorted(modules))
        print(f"{len(modules):3} {name:32} {' '.join(places)}")
    assert all(closures.values())
