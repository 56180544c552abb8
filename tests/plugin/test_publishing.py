"""Where a run's report goes, and which earlier one it leaves alone."""

import json
from dataclasses import replace

from attrcheck.plugin.conclusion import keep, publish
from attrcheck.report.details import Details
from attrcheck.report.files import set_aside
from tests.report.pages import page

WHOLE, _ = page(2, 3)
PARTIAL = replace(WHOLE, settings=replace(WHOLE.settings, partial=True))
INCOMPLETE = replace(WHOLE, missing=["d0-net-p2"])


def kept(folder):
    """Whether the report in a folder is partial, and what it misses."""
    found = json.loads((folder / "report.json").read_text())
    return found["settings"]["partial"], found["missing"]


def run(document, folder):
    """What a run does to a folder, from its beginning to its end."""
    set_aside(folder)
    return publish(document, folder)


def test_a_partial_run_leaves_the_report_of_a_whole_one_alone(tmp_path):
    run(WHOLE, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    lines, problems = run(PARTIAL, tmp_path)
    assert problems == []
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    assert kept(tmp_path / "partial") == (True, [])
    assert f"{tmp_path} keeps the report of an EARLIER run, a whole one" in lines
    assert f"written: {tmp_path / 'partial' / 'report.json'}" in lines[-1]


def test_without_a_whole_one_it_has_the_folder_to_itself(tmp_path):
    run(PARTIAL, tmp_path)
    run(PARTIAL, tmp_path)
    assert kept(tmp_path) == (True, [])
    run(WHOLE, tmp_path)
    assert kept(tmp_path) == (False, [])
    assert not (tmp_path / "partial").exists()


def test_an_incomplete_run_keeps_the_whole_one_aside(tmp_path):
    run(WHOLE, tmp_path)
    whole = (tmp_path / "report.json").read_bytes()
    run(INCOMPLETE, tmp_path)
    assert kept(tmp_path) == (False, ["d0-net-p2"])
    assert (tmp_path / "report.previous.json").read_bytes() == whole
    # The next partial run gives it its place back.
    run(PARTIAL, tmp_path)
    assert (tmp_path / "report.json").read_bytes() == whole
    assert kept(tmp_path / "partial") == (True, [])


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


def test_a_store_keeps_the_report_of_the_last_whole_run(tmp_path):
    maps = tmp_path / "maps"
    (maps / "a-x").mkdir(parents=True)
    details = Details("then")
    for document, place in (
        (PARTIAL, "report"),
        (WHOLE, "report"),
        (PARTIAL, "report/partial"),
        (INCOMPLETE, "report/partial"),
    ):
        paths, warnings = keep(document, tmp_path / "store", details, maps)
        folder = tmp_path / "store" / place
        assert paths == [folder / "report.details.json", folder / "report.json"]
        assert warnings == []
        assert kept(folder) == (document.settings.partial, document.missing)
        assert (folder / "report.maps" / "a-x").is_dir()
    assert kept(tmp_path / "store" / "report") == (False, [])


def test_what_the_store_has_is_copied_not_made_again(tmp_path, monkeypatch):
    written, _ = keep(WHOLE, tmp_path / "store", Details(), tmp_path / "none")
    monkeypatch.delattr("attrcheck.report.files.as_json")
    _, problems = publish(WHOLE, tmp_path / "report", written=written)
    assert problems == []
    for path in written:
        assert (tmp_path / "report" / path.name).read_bytes() == path.read_bytes()


def test_a_store_that_takes_no_report_is_a_warning_and_no_failure(tmp_path):
    (tmp_path / "file").touch()
    assert keep(WHOLE, tmp_path / "file", Details(), tmp_path)[0] == []
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "report").touch()
    paths, [warning] = keep(WHOLE, tmp_path / "store", Details(), tmp_path)
    assert paths == []
    assert warning.startswith("warning: the report is not kept in")
    assert "(File exists)" in warning


def test_what_is_not_a_report_is_replaced(tmp_path):
    (tmp_path / "report.json").write_text("{}")
    run(PARTIAL, tmp_path)
    assert kept(tmp_path) == (True, [])
