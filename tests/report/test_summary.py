"""A summary of one screen, a badge and trends."""

import json
from dataclasses import replace

import numpy as np
import pytest
from markdown_it import MarkdownIt

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, MethodFacts, Outcome
from attrcheck.gate import GateResult
from attrcheck.report import badges, summary
from attrcheck.report.details import Details
from attrcheck.report.document import build
from tests.report.samples import RUN, check, settings

NAMES = [f"m{number:02}" for number in range(20)]
"""From best to worst."""


def ok(score):
    return Outcome("ok", score=score, replicates=np.linspace(score, score + 0.1, 10))


def document(own=(), names=NAMES, gates=(), checks=(), **more):
    """A report of one case in which earlier names are better."""
    facts = {name: MethodFacts(own=True) for name in own}
    outcomes = {name: ok(1 - place / 100) for place, name in enumerate(names)}
    outcomes |= {name: Outcome("error", reason) for name, reason in more.items()}
    result = condense(CaseResult("a-x-up", True, 8, 1.0, outcomes))
    built = build([result], list(checks), settings(outcomes, facts=facts), [], RUN)
    return replace(built, gates=list(gates))


def methods(text):
    """The second column of the table."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [row.split("|")[2].strip() for row in rows[2:]]


def test_it_has_the_rows_of_ones_own_methods():
    text = summary.render(document(own=["m07", "m11"]))
    assert text.startswith("### ✅ attrcheck: no gates to keep\n")
    assert methods(text) == [r"\* m07", r"\* m11"]
    assert "2 of 20 methods; \\* your own" in text
    assert "m07 is worst in a-x-up (8 of 20)" in text


def test_without_ones_own_it_has_the_best_and_the_gated_ones():
    held = GateResult("m1[78].rank >= 1", True, False, ("holds for m17, m18",))
    other = GateResult("up.dummy_floor <= 1", True, False, ("is 0",))
    text = summary.render(document(gates=[held, other]))
    assert methods(text) == ["m00", "m01", "m02", "m03", "m04", "m17", "m18"]


def test_what_turns_a_run_red_stands_at_the_top_with_its_reason():
    held = GateResult("m00.rank == 1", True, False, ("m00.rank is 1",))
    broken = GateResult("m01.rank == 1", False, False, ("m01.rank is 2, wanted == 1",))
    text = summary.render(document(gates=[held, broken], bad="it | broke"))
    first, _, gate, other, *_ = text.splitlines()
    assert first == "### ❌ attrcheck: 1 of 2 gates broken, 1 method failed"
    assert gate == "- ❌ `m01.rank == 1`: m01.rank is 2, wanted == 1"
    assert other.startswith("- ✅ `m00.rank == 1`")
    assert r"- bad fails in 1 case (a-x-up): it \| broke" in text.splitlines()


@pytest.mark.parametrize(
    "red",
    [
        {"bad": "broke"},
        {"checks": [check("contract", "methods", "m00", "failed", "no")]},
        {"gates": [GateResult("m00.rank == 2", False, False, ("no",))]},
    ],
)
def test_red_is_red(red):
    assert summary.is_green(document())
    assert not summary.is_green(document(**red))
    assert not summary.is_green(replace(document(), missing=["a-x-down"]))


def test_it_is_of_one_screen_however_much_there_is():
    names = [f"m{number:03}" for number in range(300)]
    gates = [GateResult(f"{name}.rank == 1", False, False, ("no",) * 99) for name in names]
    many = {f"bad{number}": f"broke {number}\n" * 99 for number in range(50)}
    text = summary.render(document(own=names, names=names, gates=gates, **many))
    assert len(text.splitlines()) < 60
    assert len(text) < 20_000
    assert text.count("... and 292 more") == 1
    assert text.count("... and 42 more") == 1


def test_foreign_text_stays_text():
    hostile = "<script>alert(1)</script> ![x](http://x.example) | \x1b[31m"
    gate = GateResult(f"m00.rank == 1 `{hostile}", False, False, (hostile,))
    text = summary.render(replace(document(bad=hostile), gates=[]))
    text += summary._gates(replace(document(), gates=[gate]))
    html = MarkdownIt("commonmark").enable("table").render(text)
    assert "<script>" not in html
    assert "<img" not in html
    assert "\x1b" not in html


def test_the_badge_tells_the_best_of_ones_own_or_what_is_wrong():
    def badge(of):
        content = json.loads(badges.badge(of, Details()))
        assert (content.pop("schemaVersion"), content.pop("label")) == (1, "attrcheck")
        return content

    fine = document(own=["m07", "m11"])
    message = f"m07 {fine.leaderboard[7].meta_rank:+.2f}, rank 8 of 20"
    assert badge(fine) == {"message": message, "color": "brightgreen"}
    assert badge(document()) == {"message": "no gates to keep", "color": "brightgreen"}
    some = replace(fine, settings=replace(fine.settings, partial=True))
    assert badge(some)["color"] == "yellow"
    broken = GateResult("m01.rank == 1", False, False, ("no",))
    assert badge(replace(fine, gates=[broken])) == {
        "message": "1 of 1 gates broken",
        "color": "red",
    }


def test_trends_are_of_ones_own_methods_or_of_all():
    fine = document(own=["m07"])
    entry = fine.leaderboard[7]
    assert json.loads(badges.trend(fine, Details())) == [
        {
            "name": "m07",
            "unit": "Meta-Rank",
            "value": pytest.approx(entry.meta_rank, abs=1e-4),
            "range": f"{entry.low:+.2f} to {entry.high:+.2f}",
            "extra": "rank 8 of 20",
        }
    ]
    assert len(json.loads(badges.trend(document(), Details()))) == 20
