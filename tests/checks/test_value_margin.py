"""How far judges by value must stand out, and that their figures are taken from the store."""

import pytest

from attrcheck.checks import value_margin as module
from attrcheck.checks.value_margin import sensitivity, verdict

PUBLISHED = {
    "completeness": (0.503, 0.02),
    "soundness": (0.183, 0.02),
    "deletion": (0.019, 0.002),
    "road_morf": (0.014, 0.002),
}


def test_the_margin_is_that_of_the_nearest_two():
    found = verdict(PUBLISHED, 100)
    assert found.passed
    assert found.figures["margin"] == pytest.approx(0.183 / 0.019)
    assert found.figures["completeness"] == 0.503


def test_groups_that_overlap_within_their_errors_are_not_apart():
    found = verdict(PUBLISHED | {"road_morf": (0.1, 0.03)}, 100)
    assert found.passed is False
    assert found.reason == "by values at least 0.143, by order at most 0.160"


def test_a_few_images_give_no_verdict():
    found = verdict(PUBLISHED, 24)
    assert (found.passed, found.reason) == (None, "24 images are too few to tell them apart")
    assert found.figures["margin"] > 9


def test_sensitivities_are_those_of_the_other_check(lab_of, monkeypatch):
    asked = []

    def kept(check, subject, lab):
        asked.append((check.name, subject.protocol, subject.arguments))
        return module.Verdict(True, {"hausdorff": 0.2, "error": 0.01})

    monkeypatch.setattr(module, "kept", kept)
    assert sensitivity(lab_of(), "soundness") == (0.2, 0.01)
    assert asked == [("value_sensitivity", "soundness", ("soundness",))]
