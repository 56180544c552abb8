"""Which methods share a place, boards of families and weights, as people read them."""

from dataclasses import replace

import numpy as np
import pytest

from attrcheck.engine.wire import dumps, loads
from attrcheck.report import groups, markdown, terminal
from attrcheck.report.details import Details
from attrcheck.report.html import critical, page
from attrcheck.report.types import Document
from tests.report.test_comparing import report, result

FAMILIES = {"morf": "ablation", "lerf": "ablation", "sds": "single_deletion"}


def world(scheme="equal", families=FAMILIES, models="uvwxyz", best="best"):
    """`best` always wins; `one` and `two` are alike in morf and lerf, `two` is better in sds."""
    rng = np.random.default_rng(0)

    def of(mean):
        return mean + 0.05 * rng.standard_normal(20)

    results = []
    for model in models:
        for name in ("morf", "lerf", "sds"):
            two = 0.7 if name == "sds" else 0.4
            some = {best: of(0.9), "one": of(0.4), "two": of(two), "worst": np.full(20, 0.1)}
            results.append(result(f"a-{model}-{name}", some))
    return report(results, weights=scheme, families=families)


@pytest.mark.parametrize(
    ("letters", "shown"),
    [("", ""), ("a", "a"), ("ab", "a,b"), ("abc", "a-c"), ("abdefh", "a,b,d-f,h"), ("yzA", "y-A")],
)
def test_letters_take_little_room(letters, shown):
    assert groups.short(letters) == shown


def test_the_board_has_letters_in_every_format():
    document, details = world()
    shown = {entry.method: groups.short(entry.letters) for entry in document.leaderboard}
    assert len({*shown.values()}) > 1
    [line] = groups.legend(document)
    assert line.startswith("group: methods that share a letter are not told apart (95%")
    assert "6 dataset x model pairs and their images)" in line
    text = terminal.render(document)
    assert line in text
    for method, letters in shown.items():
        assert [row.split()[5] for row in text.splitlines() if row.split()[1:2] == [method]] == [
            letters
        ]
    assert f"| {shown['best']} " in markdown.render(document)
    html = page.render(document, details)
    assert "Which methods share a place" in html
    assert 'class="critical"' in html


def test_few_pairs_are_said_to_tell_little_and_one_to_speak_for_itself():
    document, _ = world(models="xy")
    assert "few as these are, they tell little apart" in groups.legend(document)[0]
    document, _ = world(models="x")
    assert "of one dataset x model, for other images alone" in groups.legend(document)[0]


def test_what_nothing_could_tell_apart_has_no_margin_and_can_be_written(monkeypatch):
    monkeypatch.setattr("attrcheck.separation.HOPELESS", 10.0)
    document, _ = world(models="xy")
    assert document.separation.critical is None  # more standard errors than could be had
    assert {*document.separation.margins[-1]} == {None}
    assert {entry.letters for entry in document.leaderboard} == {"a"}
    assert loads(Document, dumps(document)).separation == document.separation


def test_without_letters_nothing_is_said():
    document, _ = world()
    plain = replace(
        document, leaderboard=[replace(entry, letters="") for entry in document.leaderboard]
    )
    assert groups.legend(plain) == []
    assert critical.diagram(plain) is None


def test_families_have_boards_beside_the_whole():
    document, _ = world()
    [ablation, single] = document.families
    assert (ablation.family, ablation.cases) == ("ablation", 12)
    assert ablation.protocols == ["lerf", "morf"]
    assert (single.family, single.cases) == ("single_deletion", 6)
    assert single.places["two"][0] == 2
    # It wins all six cases against each of three rivals, of four methods.
    assert single.places["best"] == [1, pytest.approx(3 * np.log(6.5 / 0.5) / 4, abs=1e-4)]
    [table] = groups.families(document)
    assert list(table.headers) == ["method", "whole board", "ablation", "single_deletion"]
    assert table.rows[0][0] == "best"
    assert table.rows[0][3] == "1 (+1.92)"
    [line] = groups.firsts(document)
    assert line == "first by family of protocols: ablation best; single_deletion best"
    assert line in terminal.render(document)
    assert table.title in markdown.render(document)


def test_a_single_family_has_no_board_of_its_own():
    document, _ = world(families=dict.fromkeys(FAMILIES, "all"))
    assert document.families == groups.families(document) == groups.firsts(document) == []


def test_weights_are_stated_above_the_board_unless_they_are_equal():
    equal, by_family, by_pair = (world(scheme)[0] for scheme in ("equal", "family", "pair"))
    assert groups.weights(equal) == []
    assert "weights" not in terminal.render(equal)
    [line] = groups.weights(by_family)
    assert line.startswith("weights (family): all families of protocols weigh alike")
    assert line in terminal.above(by_family)
    # Every pair has the same number of cases: that is no weight at all.
    assert [e.meta_rank for e in by_pair.leaderboard] == [e.meta_rank for e in equal.leaderboard]
    ranks = {entry.method: entry.meta_rank for entry in by_family.leaderboard}
    plain = {entry.method: entry.meta_rank for entry in equal.leaderboard}
    assert ranks["two"] > plain["two"]  # sds counts for half of all, not for a third
    assert by_family.families == equal.families


def test_the_diagram_joins_what_shares_a_letter():
    document, _ = world()
    board = {
        "top": (1.0, "a", 1, 2),
        "high": (0.5, "ab", 1, 3),
        "low": (-0.5, "b", 2, 3),
        "last": (-1.0, "c", 4, 4),
        "any": (0.0, "abc", 1, 5),
    }
    entries = [
        replace(
            document.leaderboard[0], method=name, meta_rank=at, letters=some, best=best, worst=worst
        )
        for name, (at, some, best, worst) in sorted(board.items(), key=lambda item: -item[1][0])
    ]
    drawn = critical.diagram(replace(document, leaderboard=entries))
    at = {mark.full.partition(":")[0]: mark for mark in drawn.marks}
    assert [(bar.letter, bar.dots) for bar in drawn.bars] == [
        ("a", [at["high"].x, at["top"].x]),
        ("b", [at["low"].x, at["high"].x]),
    ]
    assert [name for name, mark in at.items() if mark.like_all] == ["any"]
    assert (at["last"].x, at["top"].x) == (drawn.low, drawn.high)
    assert at["last"].anchor == "end"
    assert at["top"].anchor == "start"
    assert {text for _, text in drawn.ticks} >= {"-1", "0", "+1"}


def test_names_in_the_diagram_are_text():
    document, _ = world(best="<b>&")
    html = page.render(document, Details())
    assert "<b>&" not in html
    assert "<title>&lt;b&gt;&amp;: " in html


def test_a_board_without_details_is_drawn_too():
    document, _ = world()
    assert 'class="critical"' in page.render(document, Details())
