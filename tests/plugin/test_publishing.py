"""Where a run's report goes, and which earlier one it leaves alone."""

import json
from dataclasses import replace

import pytest

from attrcheck.plugin.conclusion import publish
from tests.report.pages import page

WHOLE, _ = page(2, 3)
PARTIAL = replace(WHOLE, settings=replace(WHOLE.settings, partial=True))
INCOMPLETE = replace(WHOLE, missing=["d0-net-p2"])


def kept(folder):
    """Whether the report in a folder is partial, and what it misses."""
    found = json.loads((folder / "report.json").read_text())
    return found["settings"]["partial"], found["missing"]


@pytest.mark.parametrize("document", [PARTIAL, INCOMPLETE])
def test_a_partial_run_leaves_the_report_of_a_whole_one_alone(tmp_path, document):
    publish(WHOLE, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    lines, problems = publish(document, tmp_path)
    assert problems == []
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    assert kept(tmp_path / "partial") == (document.settings.partial, document.missing)
    assert f"{tmp_path} keeps the report of an EARLIER run, a whole one" in lines
    assert f"written: {tmp_path / 'partial' / 'report.json'}" in lines[-1]


def test_without_a_whole_one_it_has_the_folder_to_itself(tmp_path):
    publish(PARTIAL, tmp_path)
    publish(INCOMPLETE, tmp_path)
    assert kept(tmp_path) == (False, ["d0-net-p2"])
    publish(WHOLE, tmp_path)
    assert kept(tmp_path) == (False, [])
    assert not (tmp_path / "partial").exists()


def test_maps_in_full_size_are_put_beside_the_report(tmp_path):
    maps, folder = tmp_path / "maps", tmp_path / "report"
    (maps / "a-x").mkdir(parents=True)
    (maps / "a-x" / "one.png").write_bytes(b"new")
    (folder / "report.maps" / "b-x").mkdir(parents=True)
    publish(WHOLE, folder, maps=maps)
    files = [path for path in (folder / "report.maps").rglob("*") if path.is_file()]
    assert files == [folder / "report.maps" / "a-x" / "one.png"]
    (tmp_path / "file").touch()
    _, [verdict] = publish(WHOLE, tmp_path / "file", maps=maps)
    assert "report.maps cannot be written" in verdict.lines[-1]


def test_what_is_not_a_report_is_replaced(tmp_path):
    (tmp_path / "report.json").write_text("{}")
    publish(PARTIAL, tmp_path)
    assert kept(tmp_path) == (True, [])
