import csv
import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from attrcheck.cli import main
from attrcheck.cli.reports import REPORT_FORMATS
from attrcheck.errors import AttrcheckError
from attrcheck.report import exports, files, groups
from attrcheck.report.details import Details
from tests.report.pages import IMAGES, page
from tests.report.samples import empty


@pytest.fixture
def folder(tmp_path):
    document, details = page()
    files.write(document, tmp_path, details)
    return tmp_path


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_written_report_is_read_back_with_its_details(folder):
    document, details = page()
    for path in (folder, folder / "report.json"):
        again, details_again = exports.read(path)
        assert again == document
        assert list(details_again.cases) == list(details.cases)
        np.testing.assert_array_equal(
            details_again.cases["d0-net-p1"].image_scores, details.cases["d0-net-p1"].image_scores
        )
        np.testing.assert_array_equal(details_again.exhibits[0].maps, details.exhibits[0].maps)


def test_details_of_another_run_are_left_alone(folder):
    document, details = page()
    files.write(document, folder, replace(details, started="2023-01-01T00:00:00Z"))
    assert exports.read(folder)[1].cases == {}
    (folder / "report.details.json").unlink()
    assert exports.read(folder)[1].cases == {}


def test_every_format_has_a_name_on_the_command_line():
    assert list(exports.FORMATS) == list(REPORT_FORMATS)


@pytest.mark.parametrize("name", ["html", "md", "json"])
def test_formats_are_those_that_a_run_writes(folder, name, capsys):
    assert main(["report", str(folder), "--format", name]) == 0
    written = (folder / f"report.{name}").read_text(encoding="utf-8")
    assert capsys.readouterr().out == written


def test_the_csv_has_a_row_for_every_score():
    document, details = page()
    found = rows(exports.as_csv(document, details))
    assert len(found) == 6 * 5
    assert found[0]["case"] == "d0-net-p0"
    assert found[0]["method"] == "method_0"
    assert float(found[0]["score"]) == document.cases[0].scores["method_0"].score
    assert float(found[0]["low"]) == pytest.approx(float(found[0]["score"]) - 0.1)
    assert found[0]["rank"] == "1.0"
    assert (found[1]["status"], found[1]["score"], found[1]["rank"]) == ("not_applicable", "", "")


def test_the_csv_of_images_averages_to_the_scores():
    document, details = page()
    found = rows(exports.images_as_csv(document, details))
    assert len(found) == (6 * 5 - 1) * IMAGES
    own = [
        float(row["score"])
        for row in found
        if (row["case"], row["method"]) == ("d0-net-p3", "method_2")
    ]
    assert np.mean(own) == pytest.approx(document.cases[3].scores["method_2"].score)


def test_latex_prints_the_board_and_escapes_names():
    text = exports.as_latex(*page(methods=["one_two%", r"a\b"]))
    first, rest = text.split("\n", 1)
    assert first == r"% 6 cases; needs \usepackage{booktabs}"
    assert rest.startswith("\\begin{tabular}{rlrrlrr}\n\\toprule\n")
    assert text.endswith("\\bottomrule\n\\end{tabular}\n")
    assert r"1 & one\_two\% & $\mathbf{+" in text
    assert r"a\textbackslash{}b" in text
    assert text.count(r" \\") == 4


def test_latex_has_the_best_of_each_column_in_bold_as_it_is_printed():
    document, details = page()
    figures = [(1.234, 2.0, 0.5), (1.231, 1.96, None), (0.5, 3.0, 0.25)]
    board = [
        replace(entry, meta_rank=kappa, mean_rank=mean, wins=wins)
        for entry, (kappa, mean, wins) in zip(document.leaderboard, figures, strict=False)
    ]
    text = exports.as_latex(replace(document, leaderboard=board), details)
    cells = [line.removesuffix(r" \\").split(" & ") for line in text.splitlines()[5:8]]
    assert [row[4] for row in cells] == [groups.short(entry.letters) for entry in board]
    assert [[row[2], row[5], row[6]] for row in cells] == [
        [r"$\mathbf{+1.23}$", r"$\mathbf{2.0}$", r"$\mathbf{50}$"],
        [r"$\mathbf{+1.23}$", r"$\mathbf{2.0}$", "--"],
        ["$+0.50$", "$3.0$", "$25$"],
    ]


def test_parquet_has_the_rows_of_the_images(folder, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    out = folder / "images.parquet"
    assert main(["report", str(folder), "--format", "parquet", "--output", str(out)]) == 0
    table = parquet.read_table(out).to_pydict()
    found = rows(exports.images_as_csv(*page()))
    assert list(table) == ["case", "method", "image", "score"]
    assert table["method"] == [row["method"] for row in found]
    assert table["score"] == [float(row["score"]) for row in found]
    assert main(["report", str(folder), "--format", "parquet"]) == 1
    assert "parquet is not a text to print: add --output FILE" in capsys.readouterr().err


def test_without_pyarrow_the_remedy_is_named(folder, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    out = folder / "images.parquet"
    assert main(["report", str(folder), "--format", "parquet", "--output", str(out)]) == 1
    assert 'Parquet needs pyarrow: pip install "attrcheck[parquet]"' in capsys.readouterr().err
    assert not out.exists()


def test_without_a_board_there_is_no_latex():
    with pytest.raises(AttrcheckError, match="no leaderboard: no method has a score"):
        exports.as_latex(empty(), Details())


def test_a_report_is_written_to_a_file(folder, capsys):
    out = folder / "board.tex"
    assert main(["report", str(folder), "--format", "latex", "--output", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert out.read_text() == exports.as_latex(*page())
    assert main(["report", str(folder), "--output", str(folder / "no" / "where")]) == 1
    assert "where cannot be written (No such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "give the folder of a report, or the store of a run that came to its end"),
        ("{", "is not a report of this version of attrcheck"),
        ('{"schema": 2}', "is not a report of this version of attrcheck"),
        ("schema 1", "is a report of schema 1, and this version reads 2"),
    ],
)
def test_what_is_not_a_report_is_refused_by_name(folder, capsys, content, why):
    path = folder / "report.json"
    if content is None:
        path.unlink()
    elif content.startswith("schema"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "schema": 1}))
    else:
        path.write_text(content)
    assert main(["report", str(folder)]) == 1
    message = capsys.readouterr().err
    assert str(folder) in message
    assert why in message


def test_a_store_is_as_good_as_the_report_of_its_last_run(folder, capsys):
    store = folder / "store"
    files.keep(*with_folder(store / "report"))
    assert main(["report", str(store), "--format", "html"]) == 0
    assert capsys.readouterr().out == (folder / "report.html").read_text(encoding="utf-8")
    assert exports.read_document(store) == exports.read_document(folder / "report.json")


def test_full_size_maps_follow_the_page(folder, tmp_path_factory):
    (folder / "report.maps" / "d0-net").mkdir(parents=True)
    (folder / "report.maps" / "d0-net" / "0.png").write_bytes(b"picture")
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for place in (elsewhere, folder):
        exports.show(folder, "html", place / "page.html")
        assert (place / "report.maps" / "d0-net" / "0.png").read_bytes() == b"picture"
    exports.show(folder, "md", (other := tmp_path_factory.mktemp("other")) / "page.md")
    assert [path.name for path in other.iterdir()] == ["page.md"]


def with_folder(folder):
    document, details = page()
    return document, folder, details
