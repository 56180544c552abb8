import numpy as np
import pytest

from attrcheck.store.encoding import Entry, read_head
from attrcheck.store.entries import Store
from attrcheck.store.inventory import entries, leftovers, reports

KEY = {"method": "abc", "seed": "0"}
NAMES = ["records/tiny-linear-morf/slope", "maps/tiny-linear/slope", "checks/contract/slope"]


@pytest.fixture
def folder(tmp_path):
    """A store with three entries."""
    store = Store(tmp_path)
    store.open()
    for name in NAMES:
        store.obtain(name, KEY, lambda: Entry({"rows": np.zeros(1000)}, {"seconds": 1.0}))
    return tmp_path


def test_every_entry_is_listed_with_its_key_and_size(folder):
    items = list(entries(folder))
    assert {item.name for item in items} == set(NAMES)
    assert {item.kind for item in items} == {"records", "maps", "checks"}
    assert all(item.key == KEY and item.size == item.path.stat().st_size for item in items)
    assert list(leftovers(folder)) == []


def test_a_head_is_read_without_the_arrays(folder):
    item = next(entries(folder))
    raw = item.path.read_bytes()
    item.path.write_bytes(raw[:-7000])
    assert read_head(item.path)["facts"]["info"] == {"seconds": 1.0}


@pytest.mark.parametrize(
    "content", [b"", b"text that is no entry", b"\xff" * 16, b"\x02" + bytes(7) + b"{}"]
)
def test_what_is_not_an_entry_is_a_leftover(folder, content):
    odd = folder / "maps" / "tiny-linear" / "odd-0000.safetensors"
    odd.write_bytes(content)
    assert len(list(entries(folder))) == 3
    assert list(leftovers(folder)) == [odd]


def test_files_of_killed_writers_and_those_set_aside_are_leftovers(folder):
    aside = folder / "aside" / "maps~tiny-linear~odd"
    aside.parent.mkdir()
    aside.touch()
    temporary = folder / "maps" / "tiny-linear" / ".slope-1.host.1.ab.tmp"
    temporary.touch()
    assert list(leftovers(folder)) == [aside, temporary]


def test_the_files_of_reports_are_neither_entries_nor_leftovers(folder):
    kept = folder / "report" / "report.json"
    kept.parent.mkdir()
    kept.touch()
    (folder / "report" / "partial").mkdir()
    temporary = folder / "report" / ".report.json.host.1.ab.tmp"
    temporary.touch()
    assert reports(folder) == [kept]
    assert len(list(entries(folder))) == 3
    assert list(leftovers(folder)) == [temporary]
