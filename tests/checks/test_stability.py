"""Rankings made again: what is only reduced anew runs no pass once the case has run."""

import pytest

import attrcheck
from attrcheck.checks import check as checks
from attrcheck.checks._rankings import Rankings, alike
from attrcheck.checks.stability import softened
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.pairs import Forms
from attrcheck.protocols.single_deletion import SingleDeletion

METHODS = ("brightness", "gaussian_centre_4", "gradient", "intensity", "random", "slope")


@pytest.mark.parametrize("check", ["dummy_floor", "half_images", "measured_output"])
@pytest.mark.parametrize("protocol", ["morf", "deletion"])
def test_reducing_again_runs_no_pass(tiny, passes, lab_of, verdict_of, check, protocol):
    lab = lab_of(f"tiny-linear-{protocol}", methods=METHODS)
    (case,) = lab.cases
    lab.store.open()
    run_case(lab.evaluation(case), lambda text: None)
    assert passes
    passes.clear()
    later = lab_of(case.id, methods=METHODS)
    assert verdict_of(check, later).figures
    assert not passes
    assert later.evaluation(case).pair.predictor.passes == 0


@pytest.mark.parametrize("check", ["seed", "attributed_output", "other_removal"])
def test_looking_again_runs_some(tiny, passes, lab_of, verdict_of, check):
    lab = lab_of("tiny-linear-morf", methods=METHODS)
    (case,) = lab.cases
    lab.store.open()
    run_case(lab.evaluation(case), lambda text: None)
    passes.clear()
    verdict_of(check, lab_of(case.id, methods=METHODS))
    assert passes


def test_grids_that_do_not_divide_the_image_are_passed_over(tiny, lab_of, verdict_of):
    attrcheck.protocol("rows_of_five")(lambda: SingleDeletion(grid=5))
    result = verdict_of("other_grid", lab_of("tiny-linear-rows_of_five", methods=METHODS))
    assert (result.status, result.figures) == ("not_applicable", {})


def test_a_softmax_at_the_end_hinders_no_method_that_takes_networks_apart(tiny, lab_of):
    methods = ("deeplift", "gradient")
    lab = lab_of("tiny-linear-morf", methods=methods)
    lab.store.open()
    assert [*lab.few(*lab.cases, alter=softened).rows()] == list(methods)


def test_records_that_are_there_need_no_altered_network(tiny, lab_of, verdict_of, monkeypatch):
    before = verdict_of("attributed_output", lab_of("tiny-linear-morf", methods=METHODS))
    for form in ("network", "original", "predictor"):
        monkeypatch.setattr(Forms, form, property(lambda forms: pytest.fail("asked for")))
    assert verdict_of("attributed_output", lab_of("tiny-linear-morf", methods=METHODS)) == before


def test_who_is_left_out_of_a_ranking_is_said_with_the_reason(tiny, lab_of):
    @attrcheck.method("hates_softmax")
    def hates_softmax(model, images, targets):
        assert model(images).sum(1).sub(1).abs().max() > 1e-3, "no softmax, please"
        return images

    lab = lab_of("tiny-linear-morf", methods=(*METHODS, "hates_softmax"))
    lab.store.open()
    verdict = checks.get("attributed_output").run(lab, *lab.cases)
    assert verdict.figures
    assert "left out: hates_softmax (method 'hates_softmax' on tiny-linear raised" in verdict.reason
    assert "no softmax, please" in verdict.reason
    assert "left out" not in checks.get("seed").run(lab, *lab.cases).reason


def test_those_left_out_for_one_reason_are_named_together():
    scores = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0, "e": 5.0}
    left_out = {"x": "no rule", "y": "no rule", "z": "raised"}
    turned = {name: -score for name, score in scores.items()}
    told = "left out: x, y (no rule), z (raised)"
    verdict = alike("on Mondays", one=Rankings(scores, scores, left_out))
    assert (verdict.passed, verdict.reason) == (True, told)
    verdict = alike("on Mondays", one=Rankings(scores, turned, left_out), two=Rankings({}, {}))
    assert verdict.passed is False
    assert verdict.reason.startswith("on Mondays, methods are ranked differently: ")
    assert verdict.reason.endswith(f"; {told}")
    verdict = alike("on Mondays", one=Rankings({}, {}, {"x": "r" * 900}))
    assert verdict.passed is None
    assert "have a score in both; left out: x (rrr" in verdict.reason
    assert len(verdict.reason) < 300
