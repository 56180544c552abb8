"""Rankings made again: what is only reduced anew runs no pass once the case has run."""

import pytest

import attrcheck
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
