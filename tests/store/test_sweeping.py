import os
import time

import pytest
from filelock import FileLock

from attrcheck.store.files import temporary_name
from attrcheck.store.sweeping import sweep

HOURS = 3600


def leave(path, hours):
    """A file that was last written so long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    then = time.time() - hours * HOURS
    os.utime(path, (then, then))
    return path


@pytest.mark.parametrize("place", [".", "report", "maps/tiny-linear", "records/tiny-linear-morf"])
def test_temporary_files_of_killed_writers_go_after_a_day(tmp_path, place):
    old, new = (tmp_path / place / temporary_name("slope-1.safetensors") for _ in range(2))
    leave(old, 25)
    leave(new, 23)
    sweep(tmp_path)
    assert not old.exists()
    assert new.exists()


def test_a_lock_goes_after_a_day_unless_somebody_holds_it(tmp_path):
    old, new, held = (
        leave(tmp_path / "locks" / f"{name}.lock", hours)
        for name, hours in {"old": 25, "new": 23, "held": 25}.items()
    )
    with FileLock(held):
        leave(held, 25)
        sweep(tmp_path)
        assert not old.exists()
        assert new.exists()
        assert held.exists()
    leave(held, 25)
    sweep(tmp_path)
    assert not held.exists()


def test_all_else_stays(tmp_path):
    others = [
        leave(tmp_path / name, 1000)
        for name in (
            "maps/tiny-linear/slope-1.safetensors",
            "maps/tiny-linear/.notes.tmp",
            "aside/maps~tiny-linear~slope-1.safetensors",
            "locks/notes.txt",
            ".gitignore",
        )
    ]
    elsewhere = leave(tmp_path / "elsewhere", 1000)
    link = tmp_path / "maps" / "tiny-linear" / temporary_name("link")
    link.symlink_to(elsewhere)
    sweep(tmp_path)
    assert all(path.exists() for path in (*others, elsewhere, link))


def test_no_store_or_one_that_is_read_only_is_no_trouble(tmp_path):
    sweep(tmp_path / "none")
    old = leave(tmp_path / "maps" / "tiny-linear" / temporary_name("slope"), 25)
    old.parent.chmod(0o500)
    try:
        sweep(tmp_path)
    finally:
        old.parent.chmod(0o700)
