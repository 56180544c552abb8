import os
import socket
from pathlib import Path

import pytest

from attrcheck.store.files import write_whole


def test_what_is_written_takes_the_place_of_what_was_there(tmp_path):
    path = tmp_path / "file"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["write_bytes", "replace"])
@pytest.mark.parametrize("error", [OSError("no room"), KeyboardInterrupt()])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, step, error):
    path = tmp_path / "file"
    write_whole(path, b"old")

    def fail(*given):
        raise error

    monkeypatch.setattr(Path, step, fail)
    with pytest.raises(type(error)):
        write_whole(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_temporary_name_is_that_of_host_and_process(tmp_path, monkeypatch):
    names = []
    replace = Path.replace
    monkeypatch.setattr(
        Path, "replace", lambda self, target: (names.append(self.name), replace(self, target))[1]
    )
    write_whole(tmp_path / "file", b"")
    (name,) = names
    assert socket.gethostname() in name
    assert str(os.getpid()) in name
