import copy
import importlib
import json
import os
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from captum._utils.models.linear_model import SkLearnLasso

from attrcheck.store import fingerprints as fingerprint
from attrcheck.store import sources
from attrcheck.store.fingerprints import of_code

# The project that the tests below edit: which of its functions notice which edit?

PROJECT = {
    "plain.py": "def method(): return 1",
    "helped.py": """
        from helpers import helper
        def method(): return helper()
    """,
    "whole_module.py": """
        import helpers
        def method(): return helpers.helper()
    """,
    "constant.py": """
        from constants import STEPS
        def method(): return STEPS
    """,
    "lazy.py": """
        def method():
            from helpers import helper
            return helper()
    """,
    "dotted.py": """
        import package.inner
        def method(): return package.inner.inner()
    """,
    "borrowed.py": """
        import installed_library
        def method(): return installed_library.f()
    """,
    "callable_object.py": """
        class Method:
            def __call__(self): return 1
        method = Method()
    """,
    "partials.py": """
        from functools import partial
        import plain, helpers
        method = partial(partial(helpers.general, 1), steps=STEPS_HERE)
    """.replace("STEPS_HERE", "5"),
    "helpers.py": """
        import deeper
        def helper(): return deeper.deep()
        def general(scale, steps): return scale * steps
    """,
    "deeper.py": "def deep(): return 1",
    "constants.py": "STEPS = 5",
    "unrelated.py": "def f(): return 1",
    "package/__init__.py": """
        from . import inner
        def method(): return inner.inner()
    """,
    "package/inner.py": "def inner(): return 1",
    "package/first.py": """
        import package
        def method(): return 11
    """,
    "package/second.py": "def method(): return 12",
    "site/installed_library.py": "def f(): return 1",
}

ASK = """
import importlib, json, sys, sysconfig
paths = sysconfig.get_paths()
sysconfig.get_paths = lambda: {**paths, "purelib": sys.argv[1] + "/site"}
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/site"]
import unrelated
modules = {name: importlib.import_module(name) for name in sys.argv[2:]}
from attrcheck.store.fingerprints import of_code
print(json.dumps({name: of_code(module.method) for name, module in modules.items()}))
"""

METHODS = [
    "plain",
    "helped",
    "whole_module",
    "constant",
    "lazy",
    "dotted",
    "borrowed",
    "callable_object",
    "partials",
    "package",
    "package.first",
    "package.second",
]


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))


def fingerprints(folder, names=METHODS):
    """Each method's fingerprint, in a fresh process that imports them in this order."""
    command = [sys.executable, "-B", "-c", ASK, str(folder), *names]
    result = subprocess.run(command, capture_output=True, text=True, env={**os.environ})
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original")
    write(folder, PROJECT)
    return fingerprints(folder)


EDITS = {
    ("plain.py", "return 1", "return 2"): {"plain"},
    ("helpers.py", "return deeper.deep()", "return -deeper.deep()"): {
        "helped",
        "whole_module",
        "lazy",
    },
    ("helpers.py", "scale * steps", "scale + steps"): {"partials"},
    ("deeper.py", "return 1", "return 2"): {"helped", "whole_module", "lazy"},
    ("constants.py", "5", "6"): {"constant"},
    ("partials.py", "steps=5", "steps=6"): {"partials"},
    ("callable_object.py", "return 1", "return 2"): {"callable_object"},
    ("unrelated.py", "return 1", "return 2"): set(),
    ("package/second.py", "return 12", "return 2"): {"package.second"},
    ("package/inner.py", "return 1", "return 2"): {"package", "dotted"},
    ("site/installed_library.py", "return 1", "return 2"): set(),
    # What must not be noticed: comments, docstrings, formatting, annotations, imports for type
    # checkers, and what else a file defines.
    ("plain.py", "return 1", "return 1  # the truth"): set(),
    (
        "plain.py",
        "def method(): return 1",
        'def method():\n    "One."\n    return (\n        1)',
    ): set(),
    ("plain.py", "def method()", "def method() -> int"): set(),
    ("plain.py", "def method()", "def other(): return 3\ndef method()"): set(),
    ("plain.py", "def method()", "import deeper\ndef method()"): set(),
    (
        "plain.py",
        "def method()",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import deeper\ndef method()",
    ): set(),
    ("helpers.py", "def general", "STEPS = 3\ndef general"): set(),
}
"""An edit of a file, as (file, old, new), and who must notice it; nobody else may."""


def test_methods_of_other_code_have_other_fingerprints(original):
    assert len(set(original.values())) == len(original)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: f"{edit[0]}: {edit[2]}")
def test_an_edit_is_noticed_by_those_that_use_it_and_by_nobody_else(original, tmp_path, edit):
    name, old, new = edit
    source = textwrap.dedent(PROJECT[name])
    assert old in source
    write(tmp_path, PROJECT | {name: source.replace(old, new)})
    edited = fingerprints(tmp_path)
    assert {key for key in METHODS if edited[key] != original[key]} == EDITS[edit]


def test_a_new_file_in_a_package_changes_nobody_elses_fingerprint(original, tmp_path):
    write(tmp_path, PROJECT | {"package/third.py": "def method(): return 3"})
    found = fingerprints(tmp_path, ["package.third", *METHODS])
    assert {name: found[name] for name in METHODS} == original


def test_a_fingerprint_does_not_depend_on_the_order_of_imports(original, tmp_path):
    write(tmp_path, PROJECT)
    assert fingerprints(tmp_path, METHODS[::-1]) == original


def test_a_partial_counts_with_its_function_and_its_arguments():
    def general(steps, scale):
        return steps * scale

    one = of_code(partial(general, 5, scale=2))
    assert one == of_code(partial(general, 5, scale=2))
    assert one == of_code(partial(partial(general, 5), scale=2))
    assert one != of_code(partial(general, 6, scale=2))
    assert one != of_code(partial(general, 5, scale=3))
    assert one != of_code(general)


def test_a_closure_counts_with_what_it_closes_over():
    def make(steps):
        return lambda: steps

    assert of_code(make(5)) == of_code(make(5))
    assert of_code(make(5)) != of_code(make(6))


CONFTESTS = """
import importlib.util, sys
def load(path):  # as pytest does it with conftest files of folders that are no packages
    sys.modules.pop("conftest", None)
    spec = importlib.util.spec_from_file_location("conftest", path)
    module = sys.modules["conftest"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
modules = [load(path) for path in sys.argv[1:]]
from attrcheck.store.fingerprints import of_code
print(*(of_code(module.method) for module in modules))
"""


def test_two_conftests_of_the_same_name_are_two_files(tmp_path):
    def of(top, inner):
        write(tmp_path, {"conftest.py": top, "inner/conftest.py": inner})
        paths = [tmp_path / "conftest.py", tmp_path / "inner" / "conftest.py"]
        command = [sys.executable, "-B", "-c", CONFTESTS, *map(str, paths)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    one, two = "def method(): return 1\n", "def method(): return 2\n"
    before = of(one, one)
    assert of(two, one)[0] != before[0]
    assert of(two, one)[1] == before[1]
    assert of(one, two)[0] == before[0]
    assert of(one, two)[1] != before[1]


def of(*parts, **settings):
    """A function that was given some settings."""
    return partial(print, *parts, **settings)


def closing_over(value):
    return lambda: value


class Caller:
    def __init__(self, value):
        self.value = value

    def __call__(self):
        return self.value

    def bound(self):
        return self.value


VALUES = [
    (1, 2),
    ((1, 2), (2, 1)),
    ({"a": 1}, {"a": 2}),
    ({1, 2}, {1, 3}),
    (Path("a"), Path("b")),
    (torch.zeros(2), torch.ones(2)),
    (torch.float32, torch.float64),
    (partial(print, 1), partial(print, 2)),
    (Caller([1]), Caller([2])),
    (torch.nn.LeakyReLU(0.1), torch.nn.LeakyReLU(0.2)),
    (SkLearnLasso(alpha=0.1), SkLearnLasso(alpha=0.2)),
    (len, print),
]


@pytest.mark.parametrize("hold", [of, closing_over, Caller, lambda value: Caller(value).bound])
@pytest.mark.parametrize(("one", "other"), VALUES)
def test_whatever_a_function_holds_counts(hold, one, other):
    assert of_code(hold(one)) != of_code(hold(other))
    assert of_code(hold(one)) == of_code(hold(copy.deepcopy(one)))


def test_a_function_may_hold_itself():
    def count(number):
        return number and count(number - 1)

    caller = Caller(None)
    caller.value = [caller, count]
    assert of_code(count) == of_code(count)
    assert of_code(caller) != of_code(Caller(None))


def test_libraries_are_told_apart_by_name_and_version_not_walked(monkeypatch):
    """Only what is registered is read, and what it uses of its own project."""
    read = []
    parse = sources.read_source
    monkeypatch.setattr(
        fingerprint, "read_source", lambda file, *place: read.append(file) or parse(file, *place)
    )
    of_code(closing_over([torch.nn.ReLU(), SkLearnLasso(alpha=1.0), np.sum, Caller(1)]))
    assert {Path(file) for file in read} == {Path(__file__)}


def test_what_cannot_be_imported_or_found_is_left_out(tmp_path, monkeypatch):
    """A relative import outside of a package, and a package that raises."""
    (tmp_path / "raises").mkdir()
    (tmp_path / "raises" / "__init__.py").write_text("raise RuntimeError('no')")
    (tmp_path / "lonely.py").write_text(
        "def f():\n    from . import sibling\n    import raises.inside\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("lonely")
    assert of_code(module.f)


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages"])
def test_libraries_of_another_environment_are_libraries_too(tmp_path, monkeypatch, folder):
    place = tmp_path / "lib" / folder
    place.mkdir(parents=True)
    (place / "elsewhere.py").write_text("x = 1\n")
    (tmp_path / "uses_it.py").write_text("import elsewhere\n\ndef f(): return elsewhere.x\n")
    for path in (place, tmp_path):
        monkeypatch.syspath_prepend(path)
    before = of_code(importlib.import_module("uses_it").f)
    (place / "elsewhere.py").write_text("x = 2\n")
    del sys.modules["uses_it"]
    assert of_code(importlib.import_module("uses_it").f) == before
    del sys.modules["uses_it"], sys.modules["elsewhere"]


def test_what_a_function_notes_while_it_works_makes_it_no_other():
    notes, caller = [], Caller({})
    function = closing_over(notes)
    before = of_code(function), of_code(caller), of_code(caller.bound)
    notes.append(1)
    caller.value["a"] = 1
    assert (of_code(function), of_code(caller), of_code(caller.bound)) == before
