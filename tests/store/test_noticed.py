"""What a key must notice: edits that change results, wherever they are made."""

import json
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import attrcheck
from attrcheck.store import closures
from attrcheck.store.fingerprints import of_code

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
