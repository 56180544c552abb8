import numpy as np

from attrcheck.engine.resampling import condense
from attrcheck.engine.results import CaseResult, Outcome
from attrcheck.report import protocols
from attrcheck.report.document import build
from tests.report.samples import RUN, empty, settings


def document(**facts):
    passes = {"attribution": [1.0, 1.0], "observation": [9.0, 2.0]}
    outcome = Outcome("ok", score=0.5, replicates=np.ones(10), seconds=0.1, passes=passes)
    case = CaseResult("a-x-up", True, 8, 0.875, {"one": outcome}, **facts)
    return build([condense(case)], [], settings(["one"]), [], RUN)


def test_a_protocol_is_shown_with_its_settings_and_cost():
    [table] = protocols.tables(document(protocol_settings={"steps": 10}))
    assert table.rows == [["up", "higher", 8, "13", "steps=10"]]


def test_fine_tuned_models_are_shown_before_and_after():
    facts = {
        "removal": "mean",
        "grid": 4,
        "accuracy": {"before": 0.9, "after": 0.95},
        "worst_cell": {"before": 0.5, "after": 0.75},
        "similarity": {"label_probability": 0.0494, "gradcam": None},
    }
    _, table = protocols.tables(document(tuning=facts))
    assert table.headers[-2:] == ["difference: label probability", "difference: gradcam"]
    assert table.rows == [["a-x", "mean, 4x4", "90.0% -> 95.0%", "50.0% -> 75.0%", "0.049", "-"]]


def test_without_cases_there_is_no_table():
    assert protocols.tables(empty()) == []
