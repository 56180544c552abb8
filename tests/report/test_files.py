from dataclasses import replace
from pathlib import Path

import pytest

from attrcheck.engine.wire import loads
from attrcheck.report import files
from attrcheck.report.types import Document
from tests.report.samples import RUN, empty


@pytest.fixture
def document():
    return empty(run=replace(RUN, machine="Grüße"))


def test_both_files_are_written_into_a_new_folder(document, tmp_path):
    folder = tmp_path / "some" / "where"
    paths = files.write(document, folder)
    assert paths == [folder / "report.json", folder / "report.md"]
    assert loads(Document, paths[0].read_text(encoding="utf-8")) == document
    assert "Grüße" in paths[1].read_text(encoding="utf-8")
    assert sorted(path.name for path in folder.iterdir()) == ["report.json", "report.md"]


def test_an_older_report_is_replaced(document, tmp_path):
    files.write(document, tmp_path)
    files.write(replace(document, missing=["a-x-up"]), tmp_path)
    assert loads(Document, (tmp_path / "report.json").read_text()).missing == ["a-x-up"]
    assert "INCOMPLETE" in (tmp_path / "report.md").read_text()


def test_the_same_document_gives_the_same_bytes(document, tmp_path):
    versions = {"torch": "2.4", "numpy": "2.0"}
    first = replace(document, run=replace(document.run, versions=versions))
    shuffled = dict(reversed(versions.items()))
    second = replace(document, run=replace(document.run, versions=shuffled))
    written = [files.write(found, tmp_path)[0].read_bytes() for found in (first, second, first)]
    assert len(set(written)) == 1


def test_a_document_that_cannot_be_rendered_writes_nothing(document, tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write(replace(document, missing=[float("nan")]), tmp_path)
    with pytest.raises(TypeError):
        files.write(replace(document, cases=None), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", ["write_bytes", "replace"])
def test_a_write_that_fails_leaves_the_older_report_whole(document, tmp_path, monkeypatch, failing):
    files.write(document, tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(self, *args, **kwargs):
        if failing == "write_bytes":
            self.write_text("{half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, failing, full)
    with pytest.raises(OSError, match="No space left"):
        files.write(replace(document, missing=["a-x-up"]), tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("inside", ["", "below"])
def test_a_file_in_place_of_the_folder_is_an_os_error(document, tmp_path, inside):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file") as caught:
        files.write(document, tmp_path / "file" / inside)
    assert caught.value.strerror
