"""What a check is run on, and what becomes of what it finds."""

from dataclasses import dataclass, replace

import pytest
import torch

import attrcheck
from attrcheck.contracts import Case, Check, Protocol, Verdict
from attrcheck.engine import checking, keys
from attrcheck.engine.checking import Subject, run_check, subjects
from attrcheck.engine.lab import Lab

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


def test_protocols_that_do_not_fit_are_not_asked():
    def cuts(protocol):
        return hasattr(protocol, "grid")

    assert names("protocols", fits=cuts) == ["sds"]
    assert {name.rpartition("-")[2] for name in names("cases", fits=cuts)} == {"sds"}


def test_a_sample_of_models_stands_for_all_but_in_full():
    assert len(names("cases", sampled=True)) == 4
    assert len(names("cases", "full", sampled=True)) == 8


@pytest.mark.parametrize("over", ["cases", "protocols", "models", "suite"])
def test_smoke_runs_one_of_each_kind(over):
    assert names(over, "smoke") == names(over)[:1]


def test_smoke_runs_all_methods():
    assert names("methods", "smoke") == ["gradient", "random"]


@pytest.fixture
def lab(tiny):
    """A lab of the tiny world."""
    return replace(tiny.lab(), cases=(Case("tiny", "linear", "morf"),))


def run(check, subject, lab):
    """What a registered check finds."""
    return run_check(attrcheck.check.get(check), subject, lab)


def test_a_users_own_check_of_the_suite_is_run_every_time(lab):
    answers = iter([1.0, 2.0])
    attrcheck.check("mine", over="suite")(lambda lab: Verdict(True, {"answer": next(answers)}))
    found = [run("mine", Subject("suite"), lab).figures for _ in range(2)]
    assert found == [{"answer": 1.0}, {"answer": 2.0}]


def test_a_built_in_one_is_kept_with_figures_that_are_no_numbers(lab):
    calls = []

    def look(lab):
        calls.append(lab)
        return Verdict(None, {"score": float("nan"), "size": torch.tensor(2.0)}, "no score")

    look.__module__ = "attrcheck.checks.look"
    attrcheck.check("look", over="suite")(look)
    for _ in range(2):
        found = run("look", Subject("suite"), lab)
        assert (found.status, found.figures) == (
            "not_applicable",
            {"score": None, "size": 2.0},
        )
    assert len(calls) == 1


@pytest.fixture
def looking(lab, monkeypatch):
    """A built-in check of cases, the methods that it has seen so far, and how to run it anew."""
    seen = []

    def look(lab, case):
        seen.append(sorted(lab.evaluation(case).rows()))
        return Verdict(True, {"methods": float(len(seen[-1]))})

    look.__module__ = "attrcheck.checks.look"
    monkeypatch.setattr(checking, "LEAST_IMAGES", 1)
    attrcheck.check("look", over="cases")(look)
    [case] = lab.cases

    def again(**changes):
        settings = replace(lab.settings, **changes)
        return run("look", Subject(case.id, (case,), case.protocol), Lab.of(settings)).figures

    return seen, again


def test_what_a_built_in_one_finds_of_a_case_is_kept(looking):
    seen, again = looking
    assert again() == again() == {"methods": 2.0}
    assert len(seen) == 1


def test_it_is_found_anew_for_other_methods_seeds_and_images(looking):
    seen, again = looking
    for changes in ({}, {"methods": ("slope",)}, {"seed": 1}, {"images": 5}):
        again(**changes)
    assert len(seen) == 4


def test_it_is_not_kept_where_a_method_fails(looking, tiny):
    _, again = looking
    broken = [True]

    def sometimes(model, images, targets):
        if broken:
            raise ValueError
        return images.sum(1)

    attrcheck.method("sometimes")(sometimes)
    methods = ("brightness", "sometimes")
    assert again(methods=methods) == again(methods=methods) == {"methods": 1.0}
    broken.clear()
    assert again(methods=methods) == {"methods": 2.0}


def test_all_deciding_code_is_parsed_once_for_as_long_as_no_byte_changes(lab, monkeypatch):
    calls = []
    monkeypatch.setattr(keys, "of_deciding_code", lambda: calls.append(0) or "code")
    assert lab.code == Lab.of(lab.settings).code == "code"
    monkeypatch.setattr(keys, "of_deciding_bytes", lambda: "others")
    assert lab.code == "code"
    assert len(calls) == 2


@dataclass(frozen=True)
class Sparse(Protocol):
    """A protocol that claims nothing about the model."""

    higher_is_better = True

    def observe(self, model, batch, maps, shared):
        raise NotImplementedError

    def reduce(self, rows):
        raise NotImplementedError


def test_a_protocol_may_declare_the_checks_that_it_fails(lab):
    attrcheck.check("faithful", over="protocols")(lambda lab, name: Verdict(False, {}, "is not"))
    attrcheck.protocol("sparse", known_failures={"faithful": "claims nothing"})(Sparse)
    attrcheck.protocol("sure")(Sparse)
    sparse, sure = (
        run("faithful", Subject(name, (name,), name), lab) for name in ("sparse", "sure")
    )
    assert sparse.status == "known_failure"
    assert sparse.reason == "claims nothing (is not)"
    assert sure.status == "failed"


@pytest.mark.parametrize(("declared_on", "status"), [("tiny-linear", "failed"), ("", "passed")])
def test_a_known_failure_must_happen_only_where_it_was_seen(
    lab, tiny, monkeypatch, declared_on, status
):
    monkeypatch.setattr(checking, "DECLARED_ON", declared_on)
    attrcheck.check("fine")(lambda method, pair: Verdict(True))
    tiny.add("better", lambda *given: None, known_failures={"fine": "elsewhere it is not"})
    assert run("fine", Subject("better", ("better",)), lab).status == status


def test_what_a_method_is_known_to_fail_can_be_declared_after_the_fact(lab, tiny):
    calls = []

    def never(method, pair):
        calls.append(method)
        return Verdict(False, {}, "never")

    def empty(model, images, targets):
        raise NotImplementedError

    attrcheck.check("never")(never)
    with attrcheck.method.scratch():
        attrcheck.method("late")(empty)
        assert run("never", Subject("late", ("late",)), lab).status == "failed"
    attrcheck.method("late", known_failures={"never": "as it must"})(empty)
    assert run("never", Subject("late", ("late",)), lab).status == "known_failure"
    assert len(calls) == 1


def test_a_check_leaves_the_model_as_it_was_to_the_next(lab, tiny):
    def spoils(method, pair):
        next(pair.network.parameters()).data.mul_(2)
        return Verdict(True)

    attrcheck.check("spoils")(spoils)
    before = [weight.clone() for weight in tiny.pair.network.parameters()]
    run("spoils", Subject("slope", ("slope",)), lab)
    after = list(tiny.pair.network.parameters())
    assert all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def failing(over):
    """A built-in check that fails."""
    return Check("seed", lambda *given: Verdict(False, {"x": 1.0}, "another order"), over=over)


@pytest.mark.parametrize(
    ("over", "subject"),
    [
        ("cases", Subject("tiny-linear-morf", (Case("tiny", "linear", "morf"),), "morf")),
        ("models", Subject("tiny-linear", ("tiny", "linear"))),
        ("protocols", Subject("morf", ("morf",), "morf")),
    ],
)
def test_a_protocol_that_fails_on_a_users_own_data_is_a_finding(lab, over, subject, monkeypatch):
    monkeypatch.setattr(checking, "LEAST_IMAGES", 1)
    result = run_check(failing(over), subject, lab)
    assert (result.status, result.reason) == ("finding", "another order")


def test_a_protocol_that_fails_on_embedded_data_fails(lab):
    case = Case("digits", "resnet", "morf")
    lab = replace(lab, cases=(case, *lab.cases))
    settled = Subject(case.id, (case,), "morf")
    assert run_check(failing("cases"), settled, lab).status == "failed"
    assert run_check(failing("protocols"), Subject("morf", ("morf",), "morf"), lab).status == (
        "failed"
    )


def test_what_a_user_wrote_fails_on_own_data_too(lab, monkeypatch):
    monkeypatch.setattr(checking, "LEAST_IMAGES", 1)
    subject = Subject("tiny-linear-morf", (Case("tiny", "linear", "morf"),), "morf")
    assert run_check(replace(failing("cases"), name="mine"), subject, lab).status == "failed"
    assert run_check(failing("suite"), Subject("suite"), lab).status == "failed"
    attrcheck.protocol("own")(attrcheck.protocol.get("morf").build)
    own = Subject("own", ("own",), "own")
    assert run_check(failing("protocols"), own, lab).status == "failed"
