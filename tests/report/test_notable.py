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
    lines = [line for line in notable.lines(document) if line.startswith("mine is worst in ")]
    assert len(lines) == 1
    assert " of 3)" in lines[0]
    assert "does not beat random" not in lines[0]
    first = document.cases[0]
    lost = replace(first.scores["mine"], beats_random=False)
    cases = [replace(first, scores={**first.scores, "mine": lost}), *document.cases[1:]]
    (line, *_) = notable.lines(replace(document, cases=cases))
    assert line.endswith("; it does not beat random in 1 cases: d0-net-p0")


def test_built_in_methods_have_none():
    document, _ = page()
    facts = {name: replace(fact, own=False) for name, fact in document.settings.facts.items()}
    document = replace(document, settings=replace(document.settings, facts=facts))
    assert notable.own(document) == []
