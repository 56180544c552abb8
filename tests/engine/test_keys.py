"""What makes a record stale, and what does not."""

import shutil
import subprocess
import sys
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

for folder in sys.argv[1:]:
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("attrcheck", "conftest"):
            del sys.modules[name]
    sys.path.insert(0, folder)
    {question}
"""


def answers(question, folders, **settings):
    """A line for each folder, by one process: it imports torch once, and attrcheck each time."""
    code = ASK.format(question=question)
    command = [sys.executable, "-B", "-c", code, *map(str, folders)]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, **settings
    ).stdout.splitlines()


EDITS = {
    "nothing": CONFTEST,
    "another method": CONFTEST + SECOND,
    "a comment": CONFTEST + "# a comment",
    "a reference": CONFTEST.replace('("first")', '("first", reference="a paper")'),
    "the code": CONFTEST.replace("sum(1) *", "sum(1) /"),
    "a constant": CONFTEST.replace("2.0", "3.0"),
}


@pytest.fixture(scope="module")
def keys_of_first(tmp_path_factory):
    """The key of method `first` of a conftest after each edit; before it, in another process."""
    folders = [tmp_path_factory.mktemp("project") for _ in EDITS]
    for folder, text in zip(folders, EDITS.values(), strict=True):
        (folder / "conftest.py").write_text(text)
    question = (
        "import conftest; from attrcheck import method; "
        "from attrcheck.engine.shards import key_of; print(key_of(method.get('first')))"
    )
    lines = answers(question, folders[:1]) + answers(question, folders[1:])
    return dict(zip(EDITS, lines, strict=True))


@pytest.mark.parametrize(
    ("edited", "same"),
    [
        ("another method", True),
        ("a comment", True),
        ("a reference", True),
        ("the code", False),
        ("a constant", False),
    ],
)
def test_the_key_of_a_method_is_its_own(keys_of_first, edited, same):
    assert (keys_of_first[edited] == keys_of_first["nothing"]) is same


def engines(folder, edits):
    """The engine's own part of keys in copies of the package, each after an edit."""
    copies = [folder / str(number) for number in range(len(edits))]
    ignored = shutil.ignore_patterns("weights", "__pycache__", "*.npz")
    for copy, (file, old, new) in zip(copies, edits, strict=True):
        shutil.copytree(PACKAGE, copy / "attrcheck", ignore=ignored)
        path = copy / "attrcheck" / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
    question = "from attrcheck.engine import keys; print(keys.__file__, keys.engine())"
    lines = answers(question, copies, cwd=folder, env={"PATH": ""})
    places, parts = zip(*(line.split() for line in lines), strict=True)
    for place, copy in zip(places, copies, strict=True):
        assert Path(place).is_relative_to(copy)
    return parts


def test_what_the_engine_does_to_maps_is_noticed_and_what_it_says_is_not(tmp_path):
    unedited, told, commented, negated = engines(
        tmp_path,
        [
            ("errors.py", "", ""),
            ("errors.py", "Shown without", "Printed without"),
            ("engine/attribution.py", "# A copy: the method", "# This copies: the method"),
            ("engine/attribution.py", "maps = maps.sum(1)", "maps = -maps.sum(1)"),
        ],
    )
    assert unedited == keys.engine()
    assert told == unedited
    assert commented == unedited
    assert negated != unedited


def test_precision_counts_for_what_a_predictor_decides_and_not_for_maps(tiny):
    plain, coarse = (Loader("cpu", precision=name) for name in ("float32", "bfloat16"))
    pairs = [loader.pair("tiny", "linear").key for loader in (plain, coarse)]
    assert pairs[0] != pairs[1]
    assert keys.of_maps(pairs[0], "method", 0) == keys.of_maps(pairs[1], "method", 0)
    rows = [keys.of_rows(pair, "method", protocol.get("morf").make(), 8, 0) for pair in pairs]
    assert rows[0] != rows[1]
    assert {name for name in rows[1] if rows[0].get(name) != rows[1][name]} == {"precision"}
