"""How many images would tell two methods apart."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from attrcheck.cli import main
from attrcheck.engine.wire import loads
from attrcheck.errors import AttrcheckError
from attrcheck.report import files, powers
from attrcheck.report.details import Details
from attrcheck.report.power import Power, needed, study
from tests.report.test_comparing import report, result


def exact(mean, deviation, images=50):
    """Scores of images with exactly this mean and standard deviation."""
    wave = np.tile([1.0, -1.0], images // 2)
    return mean + deviation * wave * math.sqrt((images - 1) / images)


@pytest.mark.parametrize(("effect", "images"), [(0.1, 787), (0.2, 199), (0.5, 34), (0.8, 15)])
def test_the_numbers_are_those_of_the_textbook(effect, images):
    """Paired t-test, two-sided, 5%, power 80%: as G*Power has them."""
    assert needed(effect, 1.0) == needed(-effect, 1.0) == images
    assert needed(10 * effect, 10.0) == images


def test_with_so_many_images_a_test_finds_it_in_four_runs_of_five():
    rng = np.random.default_rng(0)
    images = needed(0.3, 1.0)
    runs = rng.normal(0.3, 1.0, size=(8000, images))
    found = stats.ttest_1samp(runs, 0.0, axis=1).pvalue < 0.05
    assert found.mean() == pytest.approx(0.8, abs=0.02)


def test_more_power_takes_more_images_and_nothing_takes_none():
    assert needed(0.1, 1.0, power=0.9) > needed(0.1, 1.0) > needed(0.1, 1.0, power=0.5)
    assert needed(0.0, 1.0) is None
    assert needed(1e-6, 1e6) is None
    assert needed(1.0, 0.0) == 2


def two(case="a-x-up", difference=0.1, deviation=0.5, images=50):
    """A report in which `mine` differs from `other` by so much."""
    some = {"mine": exact(difference, deviation, images), "other": np.zeros(images)}
    return report([result(case, some, images=images)])


def test_a_case_by_hand():
    [case] = study(*two(), "mine", "other").cases
    assert case.images == 50
    assert case.difference == pytest.approx(0.1, abs=1e-6)
    assert case.deviation == pytest.approx(0.5, rel=1e-6)
    margin = 1.96 * 0.5 / math.sqrt(50)
    assert (case.low, case.high) == pytest.approx((0.1 - margin, 0.1 + margin), abs=1e-4)
    assert not case.told
    assert case.needed == 199
    assert case.at_best == needed(0.1 + margin, 0.5)


def test_the_first_is_better_where_the_protocol_says_so():
    [down] = study(*two("a-x-down"), "mine", "other").cases
    assert down.difference == pytest.approx(-0.1, abs=1e-6)
    [turned] = study(*two("a-x-down"), "other", "mine").cases
    assert turned.difference == pytest.approx(0.1, abs=1e-6)
    assert turned.needed == down.needed == 199


def test_what_is_not_told_apart_comes_first():
    some = [
        result(f"a-x-{name}", {"mine": exact(mean, 0.5), "other": np.zeros(50)}, images=50)
        for name, mean in (("sure", 1.0), ("far", 0.01), ("near", 0.1))
    ]
    found = study(*report(some), "mine", "other")
    assert [case.case for case in found.cases] == ["a-x-near", "a-x-far", "a-x-sure"]
    assert found.cases[-1].told


def test_without_scores_of_images_nothing_is_said():
    document, _ = two()
    found = study(document, Details(), "mine", "other")
    assert (found.cases, found.board, found.unknown) == ([], None, ["a-x-up"])
    assert "no case has scores of single images of both" in powers.render(found)


def test_on_the_board_pairs_and_images_have_their_parts():
    """`mine` wins on one pair and loses on the other, whatever images are drawn."""
    some = [
        result(f"a-{model}-up", {"mine": np.full(20, score), "other": np.full(20, 0.5)})
        for model, score in (("x", 1.0), ("y", 1.0), ("z", 0.0))
    ]
    board = study(*report(some), "mine", "other").board
    assert (board.images, board.times) == pytest.approx((0, 0), abs=1e-12)
    # A third of the draws loses: kappa_mine - kappa_other is ln((S + .5) / (3.5 - S)), S of 3.
    shares = stats.binom(3, 2 / 3)
    values = np.array([math.log((wins + 0.5) / (3.5 - wins)) for wins in range(4)])
    chances = shares.pmf(range(4))
    spread = math.sqrt(chances @ values**2 - (chances @ values) ** 2)
    assert board.total == pytest.approx(spread, rel=0.05)
    assert board.difference == pytest.approx(math.log(2.5 / 1.5))
    assert board.pairs == 3
    assert board.needed == needed(board.difference, board.total * math.sqrt(3))


@pytest.mark.parametrize(
    ("one", "other", "power", "message"),
    [
        ("mine", "othr", 0.8, r"no method called 'othr'; did you mean other\?"),
        ("mine", "mine", 0.8, "it takes two methods, and both are 'mine'"),
        ("mine", "other", 1.0, "a power lies between 0 and 1, and not at 1"),
        ("mine", "none", 0.8, "no case of the report has a score of both 'mine' and 'none'"),
    ],
)
def test_what_cannot_be_answered_is_said(one, other, power, message):
    some = {"mine": exact(1, 1), "other": np.zeros(50), "none": None}
    with pytest.raises(AttrcheckError, match=message):
        study(*report([result("a-x-up", some)]), one, other, power)


def test_the_command_prints_it_in_every_format(tmp_path, capsys):
    document, details = two()
    details = replace(details, started=document.run.started)
    files.keep(document, tmp_path, details)
    assert main(["power", "mine", "other", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("mine against other: told apart in 0 of 1 case (mine better in 0, ")
    [row] = [line.split() for line in text.splitlines() if line.startswith("a-x-up")]
    assert row[-3:] == ["50", "199", "37"]
    assert max(map(len, text.splitlines()[:9])) <= 100
    assert main(["power", "mine", "other", str(tmp_path), "--format", "md"]) == 0
    assert capsys.readouterr().out.startswith("# mine against other\n")
    assert main(["power", "mine", "other", str(tmp_path), "--format", "json"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["cases"][0]["needed"] == 199
    assert loads(Power, printed) == study(document, details, "mine", "other")
    assert main(["power", "mine", "nobody", str(tmp_path)]) == 1
    assert "no method called 'nobody'" in capsys.readouterr().err
