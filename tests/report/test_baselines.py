"""Baselines are accepted by hand, and not by accident."""

from dataclasses import replace

import numpy as np
import pytest

from attrcheck.errors import AttrcheckError
from attrcheck.gate import GateResult
from attrcheck.report import exports, files
from attrcheck.report.baselines import Baseline, accept
from tests.report.pages import page
from tests.report.samples import check
from tests.report.test_comparing import world


@pytest.fixture
def place(tmp_path):
    files.write(world()[0], tmp_path / "report", world()[1])
    return tmp_path


def write(place, document, details):
    files.write(document, place / "report", details)
    return place / "report"


def test_a_baseline_has_all_that_a_comparison_needs_and_no_pictures(place):
    document, details = page()
    report = write(place, replace(document, gates=[], checks=[]), details)
    to = place / "deep" / "base.json"
    told = accept(report, to)
    assert told.startswith("there was no baseline before\n")
    assert told.endswith(f"written: {to}, {place / 'deep' / 'base.details.json'}\n")
    read, kept = exports.read(to)
    assert read == exports.read(report)[0]
    assert kept.exhibits == []
    case = "d0-net-p1"
    np.testing.assert_array_equal(kept.cases[case].image_scores, details.cases[case].image_scores)
    size = (place / "deep" / "base.details.json").stat().st_size
    assert size < (report / "report.details.json").stat().st_size / 2


def test_accepting_tells_what_moved(place):
    accept(place / "report", place / "base.json")
    report = write(place, *world(mine=0.4375))
    assert accept(report, place / "base.json").startswith("2 worse, of the scores of 2 cases")
    assert accept(report, place / "base.json").startswith("nothing moved in 2 cases")


BROKEN = GateResult("mine.rank == 1", False, False, ())


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"missing": ["a-x-up"]}, "it is incomplete, without a-x-up"),
        ({"gates": [BROKEN]}, "gate broken: mine.rank == 1"),
        (
            {"checks": [check("contract", "methods", "mine", "failed")]},
            "check contract failed of mine",
        ),
    ],
)
def test_a_report_that_is_not_whole_or_not_green_is_refused_unless_by_force(place, changes, why):
    document, details = world()
    report = write(place, replace(document, **changes), details)
    with pytest.raises(AttrcheckError, match=f"is not accepted: {why}; --force accepts it"):
        accept(report, place / "base.json")
    assert not (place / "base.json").exists()
    accept(report, place / "base.json", force=True)
    assert (place / "base.json").exists()


def test_a_method_that_failed_is_a_reason(place):
    document, details = world()
    case = document.cases[0]
    failed = replace(case.scores["mine"], status="error", score=None, reason="out of luck")
    cases = [replace(case, scores={**case.scores, "mine": failed}), *document.cases[1:]]
    report = write(place, replace(document, cases=cases), details)
    with pytest.raises(AttrcheckError, match="not accepted: mine failed in a-x-up"):
        accept(report, place / "base.json")


def test_partial_is_what_has_less_than_the_baseline_or_at_first_than_its_profile(place):
    document, details = world()
    settings = replace(document.settings, partial=True)
    report = write(place, replace(document, settings=settings), details)
    with pytest.raises(AttrcheckError, match="it is partial: other cases or methods than profile"):
        accept(report, place / "base.json")
    accept(report, place / "base.json", force=True)
    accept(report, place / "base.json")  # the selection of the baseline is the measure now
    less = replace(document, settings=settings, cases=document.cases[1:])
    report = write(place, less, details)
    with pytest.raises(AttrcheckError, match=r"it is partial, without a-x-up of .*base.json"):
        accept(report, place / "base.json")


def test_a_baseline_that_is_not_there_says_how_to_make_one(tmp_path):
    with pytest.raises(AttrcheckError, match=r"there is no baseline at .*b.json: make it w"):
        Baseline.read(tmp_path / "b.json")


def test_a_place_that_cannot_be_written_is_named(place):
    (place / "file").write_text("")
    with pytest.raises(AttrcheckError, match=r"base\.json cannot be written"):
        accept(place / "report", place / "file" / "base.json")
