"""How a comparison is told: terminal, Markdown, JSON, HTML, and in a few lines."""

import json
from dataclasses import replace

import pytest

from attrcheck.cli import main
from attrcheck.cli.comparing import FORMATS
from attrcheck.engine.wire import loads
from attrcheck.report import changes, exports, files
from attrcheck.report.comparing import compare
from attrcheck.report.comparison import Comparison
from attrcheck.report.html import comparison as page
from tests.report.test_comparing import NAMES, world

WORSE = compare(world(), world(mine=0.45), NAMES)


def test_the_verdict_counts_what_moved():
    assert changes.verdict(WORSE) == "2 worse, of the scores of 2 cases x 2 methods"
    same = compare(world(), world(), NAMES)
    assert changes.verdict(same) == "nothing moved in 2 cases x 2 methods"
    assert changes.verdict(compare(world(), world(data="x"), NAMES)) == "nothing can be compared"


def test_the_gist_names_method_cases_and_sizes():
    first, second = changes.gist(WORSE)
    assert first == "against old.json: 2 worse, of the scores of 2 cases x 2 methods"
    assert second == (
        "mine: Meta-Rank +0.80 -> -0.80 (change [-1.61, -1.61]); "
        "worse in a-x-down (+0.3 [+0.3, +0.3]), a-x-up (-0.3 [-0.3, -0.3])"
    )


def test_the_gist_says_what_is_refused_and_what_differs():
    document, details = world(data="x")
    other = replace(document, settings=replace(document.settings, seed=3))
    assert changes.gist(compare(world(), (other, details), NAMES))[1:] == [
        "not the same: seed: 0 -> 3",
        "not compared: a-x-up, a-x-down: other data: images and x",
    ]


def test_the_terminal_has_both_boards_side_by_side_and_the_scores_that_moved():
    lines = changes.render(WORSE).splitlines()
    board = lines[lines.index("Board") + 4 :]
    assert board[0].split() == ["1", "2", "other", "+0.80", "+1.61", "[+1.61,", "+1.61]"]
    assert board[1].split() == ["2", "1", "mine", "-0.80", "-1.61", "[-1.61,", "-1.61]", "2"]
    moved = lines[lines.index("Scores that moved") + 4]
    assert moved.split() == [
        *("worse", "mine", "a-x-down", "0.2408", "0.5408", "+0.3", "[+0.3,", "+0.3]"),
    ]
    assert max(map(len, board[:2])) < 80


def test_only_so_many_changes_are_shown_and_the_rest_is_counted():
    shown = changes.changes_table(WORSE, most=1)
    assert len(shown.rows) == 1
    assert shown.note.startswith("... and 1 more. Worse: ")


def test_markdown_has_headings_of_the_level_that_is_wanted():
    text = changes.as_markdown(WORSE, level=2)
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == [
        "## attrcheck comparison: 2 worse, of the scores of 2 cases x 2 methods",
        "### Board",
        "### Scores that moved",
    ]
    assert "| worse  | mine     | a-x-down |" in text
    assert [line.split("|")[-3:-1] for line in text.splitlines() if "| worse  |" in line] == [
        ["      2 ", "     1 "],
        ["      2 ", "     1 "],
    ]


def test_json_is_read_back_as_it_was():
    assert loads(Comparison, changes.as_json(WORSE)) == WORSE
    assert json.loads(changes.as_json(WORSE))["schema"] == 1


def test_the_page_asks_nobody_and_has_both_boards():
    text = page.render(WORSE)
    assert "http" not in text.replace("http-equiv", "")
    assert "<script" not in text
    assert "Meta-Rank +0.80, now -0.80" in text
    assert text.count('<th scope="row">mine</th>') == 3
    assert '<h2 id="worse">Worse</h2>' in text


@pytest.fixture
def reports(tmp_path):
    for name, report in (("old", world()), ("new", world(mine=0.45))):
        files.write(report[0], tmp_path / name, report[1])
    return tmp_path


def test_every_format_has_a_name_on_the_command_line():
    assert list(exports.COMPARISONS) == list(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_the_command_line_prints_or_writes_it(reports, name, capsys):
    old, new = str(reports / "old"), str(reports / "new" / "report.json")
    assert main(["compare", old, new, "--format", name]) == 0
    printed = capsys.readouterr().out
    assert "a-x-down" in printed
    file = reports / "comparison"
    assert main(["compare", old, new, "--format", name, "--output", str(file)]) == 0
    assert file.read_text() == printed


def test_a_report_that_is_not_there_is_named(reports, capsys):
    assert main(["compare", str(reports / "old"), str(reports / "nowhere")]) == 1
    assert "nowhere cannot be read" in capsys.readouterr().err


def test_a_report_keeps_its_comparison_and_the_next_one_without_removes_it(tmp_path):
    document, details = world()
    paths, problems = files.write(document, tmp_path, details, comparison=WORSE)
    assert not problems
    assert {path.name for path in paths} == {*files.NAMES}
    files.set_aside(tmp_path)
    paths, _ = files.write(document, tmp_path, details)
    assert {path.name for path in tmp_path.iterdir()} == {*files.FORMATS}
    nothing = compare(world(), world(data="x"), NAMES)
    paths, _ = files.write(document, tmp_path, details, comparison=nothing)
    assert {path.name for path in paths} == {*files.FORMATS}
