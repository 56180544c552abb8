"""Stores are joined: verified, once each, whole, and never two contents under one key."""

import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

from attrcheck import cli
from attrcheck.store.encoding import Entry
from attrcheck.store.entries import Store
from attrcheck.store.files import temporary_name
from attrcheck.store.inventory import entries
from attrcheck.store.merging import MergeError, merge, missing

ROWS = "records/d-m-morf/lrp"


def fill(folder, names, value=1.0, **info):
    """A store with some entries of one key each."""
    store = Store(folder)
    store.open()
    for name in names:
        arrays = {"score": np.full(4, value, np.float32)}
        store.obtain(name, {"name": name}, lambda arrays=arrays: Entry(arrays, info))
    return folder


def names(folder):
    return sorted(item.name for item in entries(folder))


@pytest.fixture
def two(tmp_path):
    """Two stores that share one entry, which took them different times."""
    one = fill(tmp_path / "one", [ROWS, "tuned/d-m/mean_4"], seconds=1.0)
    other = fill(tmp_path / "other", [f"{ROWS}@1", "tuned/d-m/mean_4"], seconds=2.0)
    return one, other


def test_entries_are_linked_and_equal_ones_taken_once(two, tmp_path):
    into = tmp_path / "into"
    merged = merge(two, into)
    assert (merged.linked, merged.copied, merged.equal, merged.damaged) == (3, 0, 1, [])
    assert names(into) == [ROWS, f"{ROWS}@1", "tuned/d-m/mean_4"]
    file = next((into / "records").rglob("*@1-*"))
    assert file.samefile(two[1] / file.relative_to(into))


def test_a_merged_store_serves_what_the_others_hold(two, tmp_path):
    merge(two, tmp_path / "into")
    entry = Store(tmp_path / "into").obtain(ROWS, {"name": ROWS}, lambda: pytest.fail("computed"))
    assert entry.arrays["score"].tolist() == [1.0] * 4


def test_where_links_cannot_be_made_files_are_copied(two, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "link", lambda *paths: (_ for _ in ()).throw(OSError(18, "EXDEV")))
    merged = merge(two, tmp_path / "into")
    assert (merged.linked, merged.copied) == (0, 3)
    shutil.rmtree(two[0])
    shutil.rmtree(two[1])
    assert names(tmp_path / "into") == [ROWS, f"{ROWS}@1", "tuned/d-m/mean_4"]


def test_a_second_merge_changes_nothing(two, tmp_path):
    merge(two, tmp_path / "into")
    before = {path: path.stat().st_ino for path in (tmp_path / "into").rglob("*.safetensors")}
    merged = merge([*two, tmp_path / "into"], tmp_path / "into")
    assert (merged.linked, merged.copied, merged.equal) == (0, 0, 4)
    assert {path: path.stat().st_ino for path in before} == before


def test_conflicts_are_named_and_nothing_is_merged(two, tmp_path):
    third = fill(tmp_path / "third", [ROWS, "records/d-m-morf/new"], value=2.0)
    with pytest.raises(
        MergeError, match=r"nothing was merged.*third/records/d-m-morf/lrp-"
    ) as told:
        merge([*two, third], tmp_path / "into")
    assert "4 of 4 values of score differ" in str(told.value)
    assert str(two[0]) in str(told.value)
    assert names(tmp_path / "into") == []


def test_a_conflict_with_what_is_there_already(two, tmp_path):
    fill(tmp_path / "into", [ROWS], value=3.0)
    with pytest.raises(MergeError, match="into/records"):
        merge(two, tmp_path / "into")
    assert names(tmp_path / "into") == [ROWS]


def test_facts_may_conflict_too(tmp_path):
    one, other = (fill(tmp_path / str(n), [ROWS], constant=n, seconds=n) for n in (1, 2))
    with pytest.raises(MergeError, match="constant is 1, not 2"):
        merge([one, other], tmp_path / "into")


def test_damaged_entries_are_named_and_left_out(two, tmp_path):
    file = next((two[1] / "records").rglob("*@1-*"))
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    moved = file.with_name(file.name.replace("lrp@1", "lrp@2"))
    shutil.copy(next((two[0] / "records").rglob("lrp-*")), moved)
    merged = merge(two, tmp_path / "into")
    assert sorted(told.partition(": ")[0] for told in merged.damaged) == [str(file), str(moved)]
    assert names(tmp_path / "into") == [ROWS, "tuned/d-m/mean_4"]


def test_a_damaged_entry_of_the_store_is_replaced(two, tmp_path):
    merge(two, tmp_path / "into")
    file = next((tmp_path / "into" / "records").rglob("lrp-*"))
    file.unlink()
    file.write_bytes(b"half")
    assert merge(two, tmp_path / "into").linked == 1
    assert len(names(tmp_path / "into")) == 3


def test_temporary_files_locks_links_and_foreign_files_stay_where_they_are(two, tmp_path):
    place = two[0] / "records" / "d-m-morf"
    (place / temporary_name("x.safetensors")).write_bytes(b"half")
    (place / "notes.txt").write_text("mine")
    (two[0] / "locks").mkdir(exist_ok=True)
    (two[0] / "locks" / "a.lock").write_text("")
    (two[0] / "README").write_text("mine")
    merge(two, tmp_path / "into")
    left = {path.name for path in (tmp_path / "into").rglob("*") if path.is_file()}
    assert {name for name in left if not name.endswith(".safetensors")} == {".gitignore"}


def test_a_killed_merge_leaves_a_valid_store_and_the_next_one_completes_it(tmp_path):
    source = fill(tmp_path / "one", [f"{ROWS}@{number}" for number in range(1, 9)])
    code = (
        "import os, signal, sys\nfrom pathlib import Path\n"
        "from attrcheck.store import merging\n"
        "bring, done = merging._bring, []\n"
        "def dying(path, to):\n"
        "    done.append(bring(path, to))\n"
        "    if len(done) == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
        "merging._bring = dying\n"
        "merging.merge([Path(sys.argv[1])], Path(sys.argv[2]))\n"
    )
    into = tmp_path / "into"
    killed = subprocess.run([sys.executable, "-c", code, source, into], check=False, timeout=60)
    assert killed.returncode == -9
    assert len(names(into)) == 3
    merged = merge([source], into)
    assert (merged.linked, merged.equal) == (5, 3)
    assert names(into) == names(source)


def test_gaps_in_the_numbers_of_shards_are_named(tmp_path):
    chosen = [ROWS, f"{ROWS}@3", "records/d-m-morf/random@2", "records/d-m-morf/random@3"]
    chosen += ["records/d-m-ids/lrp", "records/d-m-ids/lrp@1"]
    assert missing(fill(tmp_path, chosen)) == ["d-m-morf: 1 of all methods; 2 of lrp; 0 of random"]


def test_the_command(two, tmp_path, capsys):
    into = str(tmp_path / "into")
    assert cli.main(["merge", *map(str, two), "--into", into]) == 0
    assert "3 entries linked, 0 copied, 1 there already or alike" in capsys.readouterr().out
    assert cli.main(["merge", str(tmp_path / "nowhere"), "--into", into]) == 1
    assert "there is no store at" in capsys.readouterr().err
