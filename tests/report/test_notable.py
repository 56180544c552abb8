from dataclasses import replace

from attrcheck.report import notable
from tests.report.pages import page


def test_the_losses_of_a_method_begin_with_its_worst_case():
    document, _ = page()
    losses = notable.losses(document, "method_1")
    assert len(losses) == 5  # it does not apply to the sixth
    ranks = [case.scores["method_1"].rank for case in losses]
    assert ranks == sorted(ranks, reverse=True)


def test_ones_own_methods_have_a_line_each():
    document, _ = page(methods=["mine", "theirs"])
    assert notable.own(document) == ["mine"]
    case = document.cases[0]
    second = {**case.scores, "mine": replace(case.scores["mine"], rank=2.0)}
    document = replace(document, cases=[replace(case, scores=second), *document.cases[1:]])
    lines = [line for line in notable.lines(document) if line.startswith("mine is worst in ")]
    assert len(lines) == 1
    assert lines[0].startswith("mine is worst in d0-net-p0 (2 of 2)")
    assert "does not beat random" not in lines[0]
    first = document.cases[0]
    lost = replace(first.scores["mine"], beats_random=False)
    cases = [replace(first, scores={**first.scores, "mine": lost}), *document.cases[1:]]
    (line, *_) = notable.lines(replace(document, cases=cases))
    assert line.endswith("; it does not beat random in 1 cases: d0-net-p0")


def test_a_method_that_is_first_everywhere_has_no_losses():
    document, _ = page(2, ["mine", "a", "b", "c", "d", "e"])
    cases = [
        replace(case, scores={**case.scores, "mine": replace(case.scores["mine"], rank=1.0)})
        for case in document.cases
    ]
    assert "mine is first in every case" in notable.lines(replace(document, cases=cases))


def test_built_in_methods_have_none():
    document, _ = page()
    facts = {name: replace(fact, own=False) for name, fact in document.settings.facts.items()}
    document = replace(document, settings=replace(document.settings, facts=facts))
    assert notable.own(document) == []
