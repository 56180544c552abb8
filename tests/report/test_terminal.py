import copy
from dataclasses import replace

import pytest

from attrcheck.consistency import Concordance
from attrcheck.engine.results import MethodFacts
from attrcheck.gate import GateResult
from attrcheck.report import terminal
from attrcheck.report.types import (
    BoardEntry,
    CaseEntry,
    Counts,
    ProtocolTrust,
    ScoreEntry,
    Tally,
)
from tests.report.samples import RUN, empty, settings


def entry(rank, method, **changes):
    plain = BoardEntry(
        method=method,
        meta_rank=1.234,
        low=-0.5,
        high=2.25,
        rank=rank,
        mean_rank=1.5,
        wins=0.666,
        beats_random=Counts(2, of=3),
        letters="ac",
    )
    return replace(plain, **changes)


def score(status="ok", reason=""):
    value = 0.5 if status == "ok" else None
    return ScoreEntry(status, reason, value, rank=value and 1.0)


def case(name="a-x-up", images=128, **scores):
    dataset, model, protocol = name.split("-")
    return CaseEntry(name, dataset, model, protocol, True, images, 1.0, {}, {}, scores)


@pytest.fixture
def document():
    """A complete run of two methods in one case."""
    poor = {"meta_rank": -1.234, "low": None, "high": None, "wins": None, "letters": ""}
    return empty(
        settings=settings(["saliency", "random"], images=128, seed=3, of_methods=2, of_cases=1),
        cases=[case(saliency=score(), random=score())],
        leaderboard=[
            entry(1, "saliency"),
            entry(2, "random", **poor, beats_random=Counts(0, of=0)),
        ],
        run=replace(RUN, seconds_per_image={"saliency": 0.01234, "random": None}),
    )


def partial(document, **changes):
    return replace(document, settings=replace(document.settings, partial=True, **changes))


def squeezed(line):
    return " ".join(line.split())


def test_the_board_shows_every_figure(document):
    head, _, first, second = map(squeezed, terminal.board(document).splitlines())
    assert head == "# method Meta-Rank 95% interval group wins > random"
    assert first == "1 saliency +1.23 [-0.50, +2.25] a,c 67% 2/3"
    assert second == "2 random -1.23 - - - -"


@pytest.mark.parametrize("length", [1, 10, 20, 40])
def test_the_board_is_at_most_80_columns_wide(document, length):
    name = ("a" + "bcdefghij" * 9)[:length]
    document.leaderboard[0] = entry(1, name, low=-10.25, high=-9.75, meta_rank=-10.0)
    document.run.seconds_per_image[name] = 12.3456
    board = terminal.board(document)
    assert max(map(len, board.splitlines())) <= 80
    assert name[:10] in board


def test_costly_protocols_may_take_fewer_images(document):
    document.cases.append(case("a-x-slow", images=25))
    assert "25 to 128 images per case" in terminal.remarks(document)[0]


def test_a_complete_run_has_one_remark(document):
    assert terminal.remarks(document) == [
        "1 cases x 2 methods, profile default, 128 images per case, seed 3"
    ]


def test_a_partial_run_says_so_and_names_its_methods(document):
    [_, remark] = terminal.remarks(partial(document, of_cases=24, of_methods=15))
    assert remark.startswith("PARTIAL: 1 of 24 cases, 2 of 15 methods")
    assert "saliency, random" in remark


def test_another_selection_of_the_same_size_says_so(document):
    [_, remark] = terminal.remarks(partial(document, of_cases=1, of_methods=2))
    assert remark.startswith("PARTIAL: other cases or methods than those of the profile default")


def test_an_incomplete_run_says_so_and_names_what_is_missing(document):
    document.missing.extend(f"a-x-p{number}" for number in range(9))
    [_, remark] = terminal.remarks(document)
    assert remark.startswith("INCOMPLETE: no result from 9 item(s): a-x-p0, a-x-p1")
    assert remark.endswith("a-x-p7, ...")


def test_remarks_stand_above_the_board(document):
    text = terminal.render(partial(replace(document, missing=["a-x-down"])))
    assert text.index("INCOMPLETE") < text.index("PARTIAL") < text.index("Meta-Rank")


def test_without_a_board_the_reason_is_given(document):
    document = replace(document, leaderboard=[])
    assert terminal.board(document) == "no leaderboard: no method has a score"
    document = replace(document, leaderboard_problem="one | two never met")
    assert terminal.board(document) == "no leaderboard: one | two never met"
    assert "one | two never met" in terminal.render(document)


def test_methods_without_a_score_stand_below_with_the_reason(document):
    scores = document.cases[0].scores
    scores["saliency"] = score("error", "raised ValueError for image '7'")
    scores["random"] = score("not_applicable", "needs attention")
    assert terminal.footer(document) == [
        "saliency fails in 1 case (a-x-up): raised ValueError for image '7'",
        "not applicable in so many cases: random (1); report.html says why",
    ]
    assert terminal.footer(document)[0] in terminal.render(document).splitlines()


def test_what_does_not_apply_is_one_line(document):
    many = {f"m{number}": score("not_applicable", "no gradient") for number in range(30)}
    document = replace(document, cases=[case(**many), case("b-x-up", **many)])
    (line,) = terminal.footer(document)
    assert line.startswith("not applicable in so many cases: m0 (2), m1 (2)")
    assert line.endswith("...; report.html says why")


def test_own_methods_and_dummies_are_marked(document):
    assert terminal.legend(document) == ""
    facts = {"saliency": MethodFacts(own=True), "random": MethodFacts(dummy=True)}
    document = replace(document, settings=replace(document.settings, facts=facts))
    _, _, first, second = map(squeezed, terminal.board(document).splitlines())
    assert first.startswith("1 * saliency ")
    assert second.startswith("2 ~ random ")
    assert "* your own, ~ ignores the model" in terminal.render(document).splitlines()


def test_the_verdict_comes_first_and_broken_gates_before_those_that_hold(document):
    assert terminal.render(document).splitlines()[0] == "no gates to keep"
    held = GateResult("two.rank == 1", True, False, ("two.rank is 1",))
    broken = GateResult("one.rank == 1", False, False, ("one.rank is 2", "not 1"))
    first, second, third, *_ = terminal.render(replace(document, gates=[held, broken])).splitlines()
    assert first == "1 of 2 gates broken"
    assert second == "gate BROKEN: one.rank == 1 (one.rank is 2; not 1)"
    assert third == "gate holds: two.rank == 1 (two.rank is 1)"
    assert terminal.verdict(replace(document, gates=[held])) == "all 1 gates hold"
    assert terminal.verdict(replace(document, missing=["a-x-up"])) == "incomplete"


def test_a_reason_of_many_lines_stays_on_one(document):
    document.cases[0].scores["saliency"] = score("error", "first\nsecond\n\nthird")
    assert len(terminal.footer(document)) == len("\n".join(terminal.footer(document)).splitlines())


@pytest.mark.parametrize(("count", "shown"), [(20, 20), (21, 21), (50, 21)])
def test_a_long_tail_is_cut(document, count, shown):
    scores = {f"m{number}": score("undefined", "none") for number in range(count)}
    document = replace(document, cases=[case(**scores)])
    lines = terminal.footer(document)
    assert len(lines) == shown
    if count > 20:
        assert lines[-1] == f"... and {count - 20} more"


def test_agreement_and_trust_take_a_line_each(document):
    before = terminal.render(document).splitlines()
    facts = Concordance(w=0.61, cases=216, methods=20, of=27, problem="")
    tally = Tally(figure=0.04, passed=3, decided=3, known_failures=0)
    name = "a" * 40
    document = replace(
        document,
        consistency=replace(document.consistency, concordance=facts),
        protocol_verdicts=[
            ProtocolTrust(name, 9, trust, dict.fromkeys(("dummy_floor", "seed", "mine"), tally))
            for trust in (1.0, 0.5, 0.25)
        ],
    )
    after = terminal.render(document).splitlines()
    new = [line for line in after if line not in before]
    assert len(new) == 2
    assert new[0].startswith("Kendall's W is 0.61")
    assert new[1].startswith("protocol to trust: aaa")
    assert "(100% of checks, floor 0.04); least: aaa" in new[1]
    assert max(map(len, new)) <= 100


def test_rendering_does_not_change_the_document(document):
    before = copy.deepcopy(document)
    terminal.render(document)
    assert document == before


def test_the_accuracy_of_every_pair_stands_above_the_board(document):
    document.cases[:] = [
        replace(case("a-x-up", images=128), accuracy=0.9),
        replace(case("a-x-slow", images=25), accuracy=0.8),
        replace(case("a-y-tuned", images=200), accuracy=1.0, tuning={"grid": 4}),
        replace(case("a-y-up", images=128), accuracy=0.123),
    ]
    assert "accuracy: a-x 90.0%, a-y 12.3%" in terminal.render(document).splitlines()


def test_the_accuracies_of_many_pairs_take_several_lines(document):
    document.cases[:] = [case(f"dataset-model{number}-up") for number in range(40)]
    lines = terminal.accuracies(document)
    assert all(len(line) <= 100 for line in lines)
    assert all(line.startswith("accuracy: ") for line in lines)
    assert sum(line.count("100.0%") for line in lines) == 40


def test_caveats_stand_above_the_board_once_for_each_pair(document):
    remark = "all 8 images are of one class"
    document.cases[:] = [
        replace(case(name), caveats=[remark]) for name in ("a-x-up", "a-x-down", "a-y-up")
    ]
    assert terminal.caveats(document) == [f"CAUTION: a-x: {remark}", f"CAUTION: a-y: {remark}"]
    assert terminal.above(document)[-2:] == terminal.caveats(document)


def test_of_many_caveats_some_are_shown(document):
    document.cases[:] = [replace(case(f"a-x{n}-up"), caveats=["odd"]) for n in range(25)]
    assert len(terminal.caveats(document)) == 21
    assert terminal.caveats(document)[-1] == "CAUTION: ... and 5 more"


def test_intervals_without_width_are_named(document):
    document.leaderboard[0] = entry(1, "saliency", low=1.5, high=1.5)
    assert terminal.caveats(document) == ["CAUTION: intervals without width: saliency"]


def test_a_board_without_intervals_names_the_methods_that_applied_to_few_models(document):
    none = {"low": None, "high": None}
    document.leaderboard[:] = [entry(1, "chefer", **none), entry(2, "saliency", **none)]
    document.cases[:] = [
        case(f"a-{model}-up", saliency=score(), chefer=score("ok" if model == "x" else "error"))
        for model in "xyz"
    ]
    caution = (
        "CAUTION: no intervals: most resamples of the 3 dataset x model pairs are without chefer"
    )
    [line] = terminal.caveats(document)
    assert line == f"{caution}; leave what applies to few models out, or add models"
    document.leaderboard[1] = entry(2, "saliency")
    assert terminal.caveats(document) == []


def test_two_pairs_are_not_blamed_for_missing_intervals(document):
    document.leaderboard[:] = [entry(1, "saliency", low=None, high=None)]
    document.cases[:] = [case(f"a-{model}-up", saliency=score()) for model in "xy"]
    assert terminal.caveats(document) == []
