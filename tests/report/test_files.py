import math
from dataclasses import replace
from pathlib import Path

import pytest

from attrcheck.engine.wire import loads
from attrcheck.report import files
from attrcheck.report.details import Details
from attrcheck.report.types import Document, Pairwise
from tests.report.samples import RUN, empty


@pytest.fixture
def document():
    return empty(run=replace(RUN, machine="Grüße"))


NAMES = ["report.details.json", "report.html", "report.json", "report.md"]


def test_all_files_are_written_into_a_new_folder(document, tmp_path):
    folder = tmp_path / "some" / "where"
    paths, problems = files.write(document, folder)
    assert problems == []
    assert sorted(paths) == [folder / name for name in NAMES]
    assert loads(Document, (folder / "report.json").read_text(encoding="utf-8")) == document
    assert loads(Details, (folder / "report.details.json").read_text(encoding="utf-8")) == Details()
    for name in ("report.md", "report.html"):
        assert "Grüße" in (folder / name).read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.iterdir()) == NAMES


def test_an_older_report_is_replaced(document, tmp_path):
    files.write(document, tmp_path)
    files.write(replace(document, missing=["a-x-up"]), tmp_path)
    assert loads(Document, (tmp_path / "report.json").read_text()).missing == ["a-x-up"]
    assert "INCOMPLETE" in (tmp_path / "report.md").read_text()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_an_earlier_report_is_kept_aside_until_a_complete_one_is_written(document, tmp_path):
    partial = replace(document, missing=["a-x-up"])
    kept = tmp_path / "report.previous.json"
    files.set_aside(tmp_path / "none")
    files.write(document, tmp_path)
    complete = (tmp_path / "report.json").read_bytes()
    for _ in range(2):  # the second time, what is not complete makes way
        files.set_aside(tmp_path)
        assert names(tmp_path) == [
            "report.details.previous.json",
            "report.previous.html",
            "report.previous.json",
            "report.previous.md",
        ]
        assert kept.read_bytes() == complete
        files.write(partial, tmp_path)
        assert len(names(tmp_path)) == 8
    files.set_aside(tmp_path)
    files.write(document, tmp_path)
    assert names(tmp_path) == NAMES


def test_the_same_document_gives_the_same_bytes(document, tmp_path):
    versions = {"torch": "2.4", "numpy": "2.0"}
    first = replace(document, run=replace(document.run, versions=versions))
    shuffled = dict(reversed(versions.items()))
    second = replace(document, run=replace(document.run, versions=shuffled))
    written = [files.write(found, tmp_path)[0][0].read_bytes() for found in (first, second, first)]
    assert len(set(written)) == 1


@pytest.mark.parametrize(
    ("change", "written", "why"),
    [
        (
            {"pairwise": Pairwise(residual=math.nan)},
            {*NAMES} - {"report.json"},
            "not JSON compliant",
        ),
        ({"cases": None}, {"report.json", "report.details.json"}, "NoneType"),
    ],
)
def test_a_format_that_cannot_be_made_costs_no_other(document, tmp_path, change, written, why):
    paths, problems = files.write(replace(document, **change), tmp_path)
    assert {*tmp_path.iterdir()} == {*paths}
    assert {path.name for path in paths} == written
    assert len(problems) == len(NAMES) - len(written)
    assert all(why in problem for problem in problems)


def test_a_problem_of_any_length_is_cut(document, tmp_path, monkeypatch):
    def fail(document, details):
        raise RuntimeError("x" * 5_000_000)

    monkeypatch.setitem(files.FORMATS, "report.md", fail)
    paths, [problem] = files.write(document, tmp_path)
    assert sorted(path.name for path in paths) == [*NAMES[:-1]]
    assert problem.startswith("report.md cannot be made: RuntimeError: xxx")
    assert len(problem) < 5000


def test_a_name_that_cannot_be_written_costs_no_other(document, tmp_path):
    (tmp_path / "report.json").mkdir()
    paths, [problem] = files.write(document, tmp_path)
    assert {path.name for path in paths} == {*NAMES} - {"report.json"}
    assert problem.startswith(f"report.json cannot be written to {tmp_path} (")


@pytest.mark.parametrize("failing", ["write_bytes", "replace"])
def test_a_write_that_fails_leaves_the_older_report_whole(document, tmp_path, monkeypatch, failing):
    files.write(document, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(self, *args, **kwargs):
        if failing == "write_bytes":
            self.write_text("{half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, failing, full)
    paths, problems = files.write(replace(document, missing=["a-x-up"]), tmp_path)
    assert paths == []
    assert sorted(problem.split()[0] for problem in problems) == NAMES
    assert all("No space left" in problem for problem in problems)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_file_in_place_of_the_folder_is_told(document, tmp_path, inside):
    (tmp_path / "file").touch()
    paths, problems = files.write(document, tmp_path / "file" / inside)
    assert paths == []
    assert all("file" in problem and "--attr-report-dir" in problem for problem in problems)
