"""Remembered hashes: of what was asked for, never stale, whatever happens to the file of them."""

import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from attrcheck.datasets import DatasetError, hashes
from attrcheck.datasets.hashes import Hashes, cache_folder


@pytest.fixture
def files(tmp_path):
    """Forty files that are an hour old."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(40):
        age(folder, f"{number:02}", str(number) * 9)
    return folder


def age(folder, name, text, seconds=3600):
    (folder / name).write_text(text)
    when = time.time() - seconds
    os.utime(folder / name, (when, when))


@pytest.fixture(autouse=True)
def old(monkeypatch):
    """The time of the last change of a file, which nobody can set, counts as long ago."""
    monkeypatch.setattr(hashes, "RACY", -1.0)


@pytest.fixture
def opened(monkeypatch):
    """The files that were read to be hashed."""
    names = []
    digest = hashlib.file_digest

    def counted(file, kind):
        names.append(os.path.basename(file.name))
        return digest(file, kind)

    monkeypatch.setattr(hashlib, "file_digest", counted)
    return names


def names(count=40):
    return [f"{number:02}" for number in range(count)]


def test_hashes_are_those_of_the_contents_in_the_order_asked_for(files):
    found = Hashes(files).of(["03", "01"])
    assert found == [hashlib.sha256(text.encode()).hexdigest() for text in ("3" * 9, "1" * 9)]


def test_only_what_is_asked_for_is_read_and_only_once(files, opened):
    Hashes(files).of(names(5))
    assert sorted(opened) == names(5)
    Hashes(files).of(names(8))
    assert sorted(opened) == names(8)
    Hashes(files).of(names(8))
    assert len(opened) == 8


def test_a_change_of_size_or_time_is_noticed(files, opened):
    before = Hashes(files).of(names(3))
    age(files, "00", "longer than before")
    age(files, "01", "x" * 9, seconds=1800)
    after = Hashes(files).of(names(3))
    assert [one == other for one, other in zip(before, after, strict=True)] == [False, False, True]


def test_a_change_that_keeps_size_and_time_is_noticed_by_the_time_of_the_change(files):
    state = os.stat(files / "00")
    (before,) = Hashes(files).of(["00"])
    time.sleep(0.02)
    (files / "00").write_text("y" * 9)
    os.utime(files / "00", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert os.stat(files / "00").st_mtime_ns == state.st_mtime_ns
    assert Hashes(files).of(["00"]) != [before]


def test_a_file_that_is_too_young_is_not_remembered(files, opened, monkeypatch):
    monkeypatch.setattr(hashes, "RACY", 2.0)
    (files / "new").write_text("just now")
    memory = Hashes(files)
    memory.of(["new"])
    memory.of(["new"])
    assert opened == ["new", "new"]
    monkeypatch.setattr(hashes, "RACY", 0.01)
    time.sleep(0.02)
    memory.of(["new"])
    memory.of(["new"])
    assert len(opened) == 3


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": 1}',
        b'{"schema": 1, "files": {"00": [1]}}',
        b"\xff\xfe",
        b"null",
    ],
)
def test_a_damaged_memory_is_made_anew(files, opened, damage):
    first = Hashes(files)
    wanted = first.of(names(4))
    assert first.memory.is_file()
    first.memory.write_bytes(damage)
    again = Hashes(files)
    assert again.of(names(4)) == wanted
    assert len(opened) == 8
    assert len(json.loads(again.memory.read_bytes())["files"]) == 4


def test_several_writers_leave_a_memory_that_can_be_read(files):
    wanted = Hashes(files).of(names())

    def work(turn):
        memory = Hashes(files)
        part = memory.of(names()[turn::4])
        memory.save()
        return part

    with ThreadPoolExecutor(8) as threads:
        parts = list(threads.map(work, [turn % 4 for turn in range(32)]))
    assert all(part == wanted[turn % 4 :: 4] for turn, part in enumerate(parts))
    assert not [path for path in Hashes(files).memory.parent.iterdir() if path.suffix == ".tmp"]


def test_a_memory_that_cannot_be_written_is_done_without(files, tmp_path):
    (tmp_path / "file").touch()
    memory = Hashes(files, tmp_path / "file" / "below.json")
    assert memory.of(["00"]) == Hashes(files).of(["00"])
    memory.save()


def test_much_to_write_is_written_seldom(files, monkeypatch):
    writes = []
    monkeypatch.setattr(hashes, "write_whole", lambda path, content: writes.append(path))
    memory = Hashes(files)
    for name in names():
        memory.of([name])
    assert 8 <= len(writes) < 30
    memory.save()
    assert len(memory._known) == 40


def test_a_missing_file_is_named(files):
    with pytest.raises(DatasetError, match=r"gone cannot be read \(No such file"):
        Hashes(files).of(["00", "gone"])


def test_the_cache_lies_where_the_system_wants_it(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "attrcheck"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.setattr("sys.platform", "linux")
    assert str(cache_folder()) == "/home/me/.cache/attrcheck"
    monkeypatch.setattr("sys.platform", "darwin")
    assert str(cache_folder()) == "/home/me/Library/Caches/attrcheck"
