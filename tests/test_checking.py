"""What a check is run on, by what it ranges over and by profile."""

import pytest

from attrcheck.cases import Case
from attrcheck.checking import subjects
from attrcheck.checks import Check, Verdict

CASES = [
    Case(dataset, model, protocol)
    for dataset in ("digits", "shapes")
    for model in ("resnet", "vgg")
    for protocol in ("morf", "sds")
]


def names(over, profile="default", **settings):
    check = Check("asked", lambda *given: Verdict(True), over=over, **settings)
    return [each.name for each in subjects(check, CASES, ["gradient", "random"], profile)]


def test_a_check_runs_on_all_that_it_ranges_over():
    assert names("methods") == ["gradient", "random"]
    assert names("cases") == [case.id for case in CASES]
    assert names("protocols") == ["morf", "sds"]
    assert names("models") == ["digits-resnet", "digits-vgg", "shapes-resnet", "shapes-vgg"]
    assert names("suite") == ["suite"]


def test_pairs_of_cases_differ_in_one_name():
    found = names("case_pairs")
    # Each of eight cases has three such neighbours.
    assert len(found) == len(set(found)) == 12
    assert "digits-resnet-morf-digits-resnet-sds" in found


def test_protocols_that_do_not_fit_are_not_asked():
    def cuts(protocol):
        return hasattr(protocol, "grid")

    assert names("protocols", fits=cuts) == ["sds"]
    assert {name.rpartition("-")[2] for name in names("cases", fits=cuts)} == {"sds"}


def test_a_sample_of_models_stands_for_all_but_in_full():
    assert len(names("cases", sampled=True)) == 4
    assert len(names("cases", "full", sampled=True)) == 8


@pytest.mark.parametrize("over", ["cases", "case_pairs", "protocols", "models", "suite"])
def test_smoke_runs_one_of_each_kind(over):
    assert names(over, "smoke") == names(over)[:1]


def test_smoke_runs_all_methods():
    assert names("methods", "smoke") == ["gradient", "random"]
