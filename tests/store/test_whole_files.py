import errno
from pathlib import Path

import pytest

from attrcheck.store.files import temporary_name, write_whole


def test_a_file_is_written_whole_over_an_older_one(tmp_path):
    path = tmp_path / "report.json"
    for content in (b"one", b"another"):
        write_whole(path, content)
        assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_write_that_fails_leaves_the_older_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "report.json"
    write_whole(path, b"one")

    def full(self, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"another")
    assert path.read_bytes() == b"one"
    assert list(tmp_path.iterdir()) == [path]


def test_no_two_writers_share_a_temporary_name():
    assert temporary_name("a") != temporary_name("a")
    assert len(temporary_name("a" * 300)) < 255
