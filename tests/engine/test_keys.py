"""What makes a record stale, and what does not."""

import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import attrcheck
from attrcheck.engine import keys
from attrcheck.engine.loading import Loader
from attrcheck.protocols import protocol
from attrcheck.store.inventory import entries

PACKAGE = Path(attrcheck.__file__).parent


def test_every_key_of_the_store_has_the_engines_own_part(tiny):
    tiny.run()
    parts = [item.key for item in entries(tiny.folder)]
    assert len(parts) == 6  # intact, shared, and maps and rows of two methods
    assert {key["engine"] for key in parts} == {keys.engine()}


def test_the_engines_own_part_are_files_that_exist():
    for module in keys.ENGINE:
        path = PACKAGE.joinpath(*module.split(".")[1:]).with_suffix(".py")
        assert path.is_file(), f"{module} is named in keys.ENGINE, but there is no {path}"


CONFTEST = """
import attrcheck

@attrcheck.method("first")
def first(model, images, targets):
    return images.sum(1) * SCALE

SCALE = 2.0
"""
SECOND = """
@attrcheck.method("second")
def second(model, images, targets):
    return images.abs().sum(1)
"""
ASK = """
import sys
sys.path.insert(0, sys.argv[1])
import conftest
import attrcheck
from attrcheck.engine.shards import key_of
print(key_of(attrcheck.method.get("first")))
"""


def key_of_first(folder, text):
    """The key of the method `first` of a conftest, in a process of its own."""
    (folder / "conftest.py").write_text(text)
    command = [sys.executable, "-B", "-c", ASK, str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def unedited(tmp_path_factory):
    """The folder of a project, and the key before anything is edited."""
    folder = tmp_path_factory.mktemp("project")
    return folder, key_of_first(folder, CONFTEST)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        (CONFTEST + SECOND, True),
        (CONFTEST + "# a comment", True),
        (CONFTEST.replace('("first")', '("first", reference="a paper")'), True),
        (CONFTEST.replace("sum(1) *", "sum(1) /"), False),
        (CONFTEST.replace("2.0", "3.0"), False),
    ],
    ids=["another method", "a comment", "a reference", "the code", "a constant"],
)
def test_the_key_of_a_method_is_its_own(unedited, text, same):
    folder, key = unedited
    assert (key_of_first(folder, text) == key) is same


@pytest.fixture(scope="module")
def engine_of(tmp_path_factory):
    """The engine's own part of keys in a copy of the package after an edit."""

    def engine_of(file="", old="", new=""):
        folder = tmp_path_factory.mktemp("package")
        ignored = shutil.ignore_patterns("weights", "__pycache__", "*.npz")
        shutil.copytree(PACKAGE, folder / "attrcheck", ignore=ignored)
        if file:
            path = folder / "attrcheck" / file
            text = path.read_text()
            assert old in text
            path.write_text(text.replace(old, new, 1))
        code = textwrap.dedent("""
            from attrcheck.engine import keys
            print(keys.__file__, keys.engine())
        """)
        done = subprocess.run(
            [sys.executable, "-B", "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
            env={"PYTHONPATH": str(folder), "PATH": ""},
        )
        place, engine = done.stdout.split()
        assert Path(place).is_relative_to(folder)
        return engine

    return engine_of


def test_what_the_engine_does_to_maps_is_noticed_and_what_it_says_is_not(engine_of):
    before = engine_of()
    assert before == keys.engine()
    assert engine_of("errors.py", "Shown without", "Printed without") == before
    copied = ("engine/attribution.py", "# A copy: the method", "# This copies: the method")
    assert engine_of(*copied) == before
    negated = ("engine/attribution.py", "maps = maps.sum(1)", "maps = -maps.sum(1)")
    assert engine_of(*negated) != before


def test_precision_counts_for_what_a_predictor_decides_and_not_for_maps(tiny):
    plain, coarse = (Loader("cpu", precision=name) for name in ("float32", "bfloat16"))
    pairs = [loader.pair("tiny", "linear").key for loader in (plain, coarse)]
    assert pairs[0] != pairs[1]
    assert keys.of_maps(pairs[0], "method", 0) == keys.of_maps(pairs[1], "method", 0)
    rows = [keys.of_rows(pair, "method", protocol.get("morf").make(), 8, 0) for pair in pairs]
    assert rows[0] != rows[1]
    assert {name for name in rows[1] if rows[0].get(name) != rows[1][name]} == {"precision"}
