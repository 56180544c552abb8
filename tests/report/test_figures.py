"""Figures for papers: what is drawn, and what is said where there is nothing to draw."""

import io
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from attrcheck.cli import main
from attrcheck.errors import AttrcheckError
from attrcheck.report import figures, files
from attrcheck.report.details import Details
from tests.report.pages import SHOWN, page
from tests.report.samples import empty

DOCUMENT, DETAILS = page()
CASE, PAIR = "d0-net-p3", "d0-net"


def lines(axes):
    """What is drawn in a part of a figure, by the x and y of its points."""
    return [np.column_stack(line.get_data()).tolist() for line in axes.get_lines()]


def test_the_board_has_a_dot_and_an_interval_for_every_method():
    (axes,) = figures.board(DOCUMENT).axes
    drawn = lines(axes)
    for place, entry in enumerate(DOCUMENT.leaderboard):
        assert [[entry.low, place], [entry.high, place]] in drawn
        assert [[entry.meta_rank, place]] in drawn
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [entry.method for entry in DOCUMENT.leaderboard]
    assert axes.get_ylim() == (4.5, -0.5)  # the best is at the top
    assert axes.get_xlabel().endswith("grey ignores the model; orange is your own")


def test_the_board_of_some_methods():
    (axes,) = figures.board(DOCUMENT, ["method_1", "random"]).axes
    assert len(axes.get_yticklabels()) == 2
    assert not axes.get_xlabel().endswith("your own")
    with pytest.raises(
        AttrcheckError, match="'methd_1' is not on the board: did you mean method_1"
    ):
        figures.board(DOCUMENT, ["methd_1"])
    with pytest.raises(AttrcheckError, match="nothing to draw: no leaderboard"):
        figures.board(empty())


def test_curves_are_those_of_the_best_and_of_random_with_bands():
    case = DOCUMENT.cases[3]
    (axes,) = figures.curves(DOCUMENT, DETAILS, CASE).axes
    names = [text.get_text() for text in axes.get_legend().get_texts()]
    ranks = [case.scores[name].rank for name in names]
    assert ranks == sorted(ranks)
    assert "random" in names
    curve = case.scores[names[0]].curve
    assert lines(axes)[0] == np.column_stack([curve.x, curve.y]).tolist()
    assert len(axes.collections) == len(names)
    assert axes.get_title().startswith(f"{CASE}, ")
    (plain,) = figures.curves(DOCUMENT, Details(), CASE, ["method_2"]).axes
    assert len(plain.get_lines()) == 1
    assert len(plain.collections) == 0


def test_what_has_no_curve_is_named():
    with pytest.raises(AttrcheckError, match="no case 'd0-net-p33' in this report: did you mean"):
        figures.curves(DOCUMENT, DETAILS, "d0-net-p33")
    with pytest.raises(AttrcheckError, match=f"no method 'nobody' in {CASE}"):
        figures.curves(DOCUMENT, DETAILS, CASE, ["nobody"])
    case = DOCUMENT.cases[3]
    scores = {name: replace(score, curve=None) for name, score in case.scores.items()}
    without = replace(DOCUMENT, cases=[replace(case, scores=scores)])
    with pytest.raises(AttrcheckError, match=f"there are no curves of {CASE}: p3 has none"):
        figures.curves(without, DETAILS, CASE)


def test_a_gallery_has_a_row_for_every_image_and_a_column_for_every_method():
    figure = figures.gallery(DOCUMENT, DETAILS, PAIR, ["method_2", "random"])
    assert len(figure.axes) == SHOWN * 3
    assert [axes.get_title() for axes in figure.axes[:3]] == ["image", "method_2", "random"]
    with pytest.raises(AttrcheckError, match="there are no images of 'd-net' in this report"):
        figures.gallery(DOCUMENT, DETAILS, "d-net")
    with pytest.raises(AttrcheckError, match="'nobody' has no maps of d0-net"):
        figures.gallery(DOCUMENT, DETAILS, PAIR, ["nobody"])


def test_unasked_a_gallery_shows_the_best():
    titles = [axes.get_title() for axes in figures.gallery(DOCUMENT, DETAILS, PAIR).axes]
    best = [entry.method for entry in DOCUMENT.leaderboard][: figures.BEST]
    assert titles[1 : 1 + len(best)] == best


def test_long_names_and_signs_of_formulas_are_drawn_as_they_are():
    document, details = page(methods=["integrated_gradients_abs", "a$b$", "x"])
    names = ["integrated_gradients_abs", "a$b$"]
    figure = figures.gallery(document, details, PAIR, names)
    assert figure.axes[1].get_title() == "integrated_\ngradients_abs"
    assert figure.axes[2].get_title() == r"a\$b\$"
    assert figures.content_of(figure, "png").startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("file", "chosen", "start"),
    [
        ("board.pdf", [], b"%PDF"),
        ("curves.svg", ["--case", CASE, "--methods", "method_0,method_2"], b"<?xml"),
        ("maps.png", ["--pair", PAIR], b"\x89PNG"),
    ],
)
def test_figures_are_files_that_are_alike_each_time(tmp_path, file, chosen, start):
    files.write(DOCUMENT, tmp_path, DETAILS)
    contents = []
    for _ in range(2):
        assert main(["report", str(tmp_path), "--figure", str(tmp_path / file), *chosen]) == 0
        contents.append((tmp_path / file).read_bytes())
    assert contents[0].startswith(start)
    assert contents[0] == contents[1]
    if file.endswith("png"):
        assert min(Image.open(io.BytesIO(contents[0])).size) > 300


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (["--figure", "board.gif"], "board.gif must end in pdf, png, svg"),
        (["--figure", "no/where/board.pdf"], "board.pdf cannot be written (No such file"),
        (["--figure", "b.pdf", "--format", "csv"], "leave out --format and --output"),
        (["--case", CASE], "--case, --pair and --methods are for figures: add --figure FILE"),
    ],
)
def test_what_makes_no_figure_is_said(tmp_path, monkeypatch, capsys, chosen, why):
    monkeypatch.chdir(tmp_path)
    files.write(DOCUMENT, tmp_path, DETAILS)
    assert main(["report", str(tmp_path), *chosen]) == 1
    assert why in capsys.readouterr().err
