"""Whether a method applies is asked once and remembered: a second run touches no network."""

import pytest

from attrcheck.engine.applying import refusal
from attrcheck.engine.pairs import Forms
from tests.worlds import brightness


@pytest.fixture
def asked(tiny):
    """How often a method that does not apply was asked where it does."""
    calls = []

    def not_applicable(model):
        calls.append(model)
        return "it has no attention"

    tiny.add("picky", brightness, not_applicable=not_applicable)
    return calls


def outcome(tiny, **changes):
    return tiny.run(methods=("picky", "slope"), **changes).outcomes["picky"]


def test_the_store_remembers_the_answer(tiny, asked):
    for _ in range(2):
        answer = outcome(tiny)
        assert (answer.status, answer.reason) == ("not_applicable", "it has no attention")
        tiny.restart()
    assert len(asked) == 1


def test_images_and_protocols_do_not_matter(tiny, asked):
    outcome(tiny)
    tiny.restart()
    assert outcome(tiny, images=5).status == "not_applicable"
    tiny.run("tiny-linear-ids", methods=("picky",))
    assert len(asked) == 1


def test_other_code_is_asked_again(tiny):
    store = tiny.lab().store
    no = tiny.method(brightness, not_applicable=lambda model: "no")
    yes = tiny.method(brightness, not_applicable=lambda model: None)
    assert [refusal(method, tiny.pair, store) for method in (no, yes, no)] == ["no", None, "no"]


def test_an_error_is_not_remembered(tiny):
    answers = iter([ValueError("not today"), None])

    def not_applicable(model):
        answer = next(answers)
        if answer is not None:
            raise answer

    tiny.add("picky", brightness, not_applicable=not_applicable)
    assert "not today" in outcome(tiny).reason
    tiny.restart()
    assert outcome(tiny).status == "ok"


def test_what_cannot_be_told_apart_is_the_error_of_that_method(tiny):
    class Odd:
        def __call__(self, model):
            return None

        def __getstate__(self):
            raise RuntimeError("secret")

        @property
        def __dict__(self):
            raise RuntimeError("secret")

    tiny.add("picky", brightness, not_applicable=Odd())
    result = tiny.run(methods=("picky", "slope")).outcomes
    assert result["picky"].status == "error"
    assert "'picky'" in result["picky"].reason
    assert result["slope"].status == "ok"


def test_a_case_whose_records_are_all_there_prepares_no_network(tiny, asked, monkeypatch):
    result = tiny.run(methods=("picky", "slope"))
    tiny.restart()
    for form in ("network", "original", "predictor"):

        def refuse(self, form=form):
            raise AssertionError(f"{form} was asked for")

        monkeypatch.setattr(Forms, form, property(refuse))
    again = tiny.run(methods=("picky", "slope"))
    assert again.outcomes["slope"].score == result.outcomes["slope"].score
    assert again.outcomes["picky"].status == "not_applicable"
