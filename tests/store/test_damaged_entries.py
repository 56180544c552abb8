"""Files that are damaged, crafted or not entries at all: set aside, never served."""

import errno
import json
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from attrcheck.store.encoding import read_head
from attrcheck.store.entries import Store, StoreWarning
from attrcheck.store.recent import Recent
from tests.store.one_entry import ENTRY, KEY, NAME


def header(path):
    """The JSON header of a safetensors file, and the bytes after it."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def empty(path):
    path.write_bytes(b"")


def text(path):
    path.write_text("not an entry at all")


def foreign(path):
    save_file({"weight": np.ones(3)}, path)


def foreign_with_our_name(path):
    save_file({"weight": np.ones(3)}, path, {"attrcheck": "[1, 2]"})


def misplaced(path):
    store, name = Store(path.parents[2]), "records/tiny-linear-morf/other"
    store.obtain(name, KEY, lambda: ENTRY)
    store.path(name, KEY).rename(path)


def of_another_key(path):
    rewrite(path, key={**KEY, "seed": "1"})


def outdated(path):
    rewrite(path, schema=0)


def without_digest(path):
    rewrite(path, digest=None)


def without_facts(path):
    rewrite(path, facts=None)


def other_info(path):
    facts = read_head(path)["facts"]
    rewrite(path, facts={**facts, "info": {"seconds": 99.0, "constant": 2}})


def other_origin(path):
    rewrite(path, facts={**read_head(path)["facts"], "created": "yesterday"})


def flipped(path):
    raw = bytearray(path.read_bytes())
    raw[-12_000] ^= 1  # the last bit of a number in the middle of `logit`
    path.write_bytes(raw)


def rewrite(path, **changes):
    """Change the head of an entry; None takes a part away."""
    head, data = header(path)
    ours = {**json.loads(head["__metadata__"]["attrcheck"]), **changes}
    ours = {name: value for name, value in ours.items() if value is not None}
    head["__metadata__"]["attrcheck"] = json.dumps(ours)
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def deep(path):
    rewrite_raw(path, "[" * 100_000)


def null_head(path):
    rewrite_raw(path, "null")


def without_metadata(path):
    raw = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + bytes(4))


def unknown_dtype(path):
    head, data = header(path)
    head["logit"]["dtype"] = "F7"
    text = json.dumps(head).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def odd_facts(path):
    rewrite(path, facts=[])


def huge_head(path):
    with path.open("wb") as file:
        file.write((2**40).to_bytes(8, "little"))
        file.truncate(2**32)  # four gigabytes that take no room


def rewrite_raw(path, text):
    """Put any text in the place of the head."""
    head, data = header(path)
    head["__metadata__"]["attrcheck"] = text
    raw = json.dumps(head).encode()
    path.write_bytes(len(raw).to_bytes(8, "little") + raw + data)


DAMAGES = [
    deep,
    null_head,
    without_metadata,
    unknown_dtype,
    odd_facts,
    truncate,
    empty,
    text,
    foreign,
    foreign_with_our_name,
    misplaced,
    of_another_key,
    outdated,
    without_digest,
    without_facts,
    other_info,
    other_origin,
    flipped,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_file_that_is_no_longer_right_is_named_set_aside_and_computed_again(
    store, path, obtain, damage
):
    damage(path)
    damaged = path.read_bytes()
    with pytest.warns(StoreWarning, match=str(path)):
        assert obtain() == 1
    assert [kept.read_bytes() for kept in (store.folder / "aside").iterdir()] == [damaged]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert obtain() == 0


def test_a_file_of_many_gigabytes_is_set_aside_at_once(store, path, obtain):
    huge_head(path)
    started = time.monotonic()
    with pytest.warns(StoreWarning, match="not a safetensors file"):
        assert obtain() == 1
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("kind", ["pipe", "folder", "link out of the store", "dangling link"])
def test_what_is_not_a_file_is_not_read(store, path, obtain, tmp_path, kind):
    """Nothing hangs on it, and it costs the entry's file at most."""
    outside = tmp_path / "outside.safetensors"
    outside.write_bytes(path.read_bytes())
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(outside if kind.startswith("link") else tmp_path / "nowhere")
    before = outside.read_bytes()
    assert obtain() == 1
    assert outside.read_bytes() == before


@pytest.mark.parametrize("code", [errno.EMFILE, errno.EIO, errno.ESTALE])
def test_a_file_that_cannot_be_read_for_now_is_tried_again_and_kept(
    store, path, obtain, monkeypatch, code
):
    read, failures = Path.read_bytes, [1, 1]

    def sometimes(self):
        if self == path and failures:
            failures.pop()
            raise OSError(code, os.strerror(code))
        return read(self)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", sometimes)
        assert obtain() == 0
        store.recent = Recent()  # as in a new process
        failures.extend([1] * 10)
        patch.setattr("attrcheck.store.files.PAUSES", (0, 0))
        with pytest.warns(StoreWarning, match=os.strerror(code)):
            assert obtain() == 1
    assert not (store.folder / "aside").exists()
    assert obtain() == 0


def test_no_single_flipped_byte_goes_unnoticed(store, path, same_arrays):
    """Wherever it is: the entry is read as it was, or set aside; never read as something else."""
    whole = path.read_bytes()
    size = len(whole)
    for at in [*range(0, size - 24_012, 3), *range(size - 24_012, size, 997)]:
        raw = bytearray(whole)
        raw[at] ^= 1
        path.write_bytes(raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            entry = store._read(path, NAME, KEY)
        if entry is not None:
            assert same_arrays(entry.arrays, ENTRY.arrays), at
            assert entry.info == ENTRY.info, at


def test_a_damaged_file_is_gone_even_where_warnings_are_errors(path, obtain):
    text(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(StoreWarning):
            obtain()
        assert obtain() == 1


def test_a_damaged_file_that_another_worker_set_aside_first_is_no_problem(store, path, obtain):
    """Both read it, both found it damaged, the other one was faster."""
    text(path)
    rename = Path.replace

    def too_late(self, target):
        if self == path:
            rename(self, self.with_name("moved-by-the-other"))
        return rename(self, target)

    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setattr(Path, "replace", lambda self, target: too_late(self, target))
        store._read(path, NAME, KEY)
    assert obtain() == 1
