"""Each cause of a failure once, with where it is seen."""

from dataclasses import replace

import numpy as np
import pytest

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.errors import cause
from attrcheck.report import causes, terminal, trust, verdicts
from attrcheck.report.document import build
from tests.report.samples import RUN, check, settings

RAISED = "method 'bad' on {0} raised ValueError in the batch that starts with image '{0}/7': no {1}"


def case(name, **reasons):
    """A case in which methods fail for these reasons."""
    outcomes = {method: Outcome("error", reason) for method, reason in reasons.items()}
    fine = Outcome("ok", score=0.5, replicates=np.linspace(0.4, 0.6, 10))
    return condense(CaseResult(name, True, 8, 1.0, {"fine": fine, **outcomes}))


def document(*results, checks=()):
    return build(results, checks, settings(results[0].outcomes), [], RUN)


@pytest.fixture
def failing():
    pairs = ("a-x", "a-x", "b-y", "b-y")
    cases = [
        case(f"{pair}-p{number}", bad=RAISED.format(pair, "layer9"))
        for number, pair in enumerate(pairs)
    ]
    other = case("b-y-p4", bad=RAISED.format("b-y", "gradient"))
    checks = [
        check("contract", "methods", "bad", "failed", RAISED.format("a-x", "layer9")),
        check("randomisation", "methods", "bad", "failed", RAISED.format("a-x", "layer9")),
        check("contract", "methods", "fine", "failed", "maps differ"),
    ]
    return document(*cases, other, checks=checks)


def test_pair_image_and_shapes_are_not_part_of_a_cause():
    shape = "method 'a' on {} returned a tensor of shape {} for images [4, 3]; wanted [4]"
    assert cause(shape.format("x-y", "[4, 1]")) == cause(shape.format("v-w", "[8]"))
    assert cause(RAISED.format("a-x", "b")) == cause(RAISED.format("timm:r.a1-z", "b"))
    assert cause(RAISED.format("a-x", "b")) != cause(RAISED.format("a-x", "c"))
    assert cause("method 'a' on x-y raised") != cause("method 'b' on x-y raised")


def test_a_fault_is_told_once_with_its_cases_and_checks(failing):
    most, least = causes.faults(failing)
    assert most.line == (
        "bad fails in 4 cases (a-x-p0, a-x-p1, b-y-p2, ...) and 2 checks (contract, "
        "randomisation): " + RAISED.format("a-x", "layer9")
    )
    assert least.line == "bad fails in 1 case (b-y-p4): " + RAISED.format("b-y", "gradient")
    assert terminal.footer(failing) == [most.line, least.line]


def test_the_verdict_counts_methods_and_what_they_do_not_explain(failing):
    assert terminal.verdict(failing) == "no gates to keep, 1 method failed, 1 check failed"
    assert terminal.verdict(replace(failing, checks=[])) == "no gates to keep, 1 method failed"


def test_checks_that_fail_for_one_cause_share_it(failing):
    methods = verdicts.of_methods(["bad", "fine"], failing.checks)
    [table] = trust.tables(replace(failing, method_verdicts=methods))
    bad, fine = table.rows
    assert bad[2] == "contract, randomisation: " + RAISED.format("a-x", "layer9")
    assert fine[2] == "contract: maps differ"
