"""The published schema: that of the types, and one that real reports keep."""

import json

import pytest

from attrcheck.engine.wire import plain
from attrcheck.report import schema
from tests.report.samples import check, empty
from tests.worlds import ITEMS, TINY

pytest_plugins = ["pytester"]

CHECKS = """
def test_method(attr_check):
    attr_check.run()


def test_protocol(attr_protocol_check):
    attr_protocol_check.run()
"""


@pytest.fixture
def validate():
    jsonschema = pytest.importorskip("jsonschema")
    published = json.loads(schema.PATH.read_text(encoding="utf-8"))
    kind = jsonschema.validators.validator_for(published)
    kind.check_schema(published)
    return kind(published).validate


def test_the_published_schema_is_that_of_the_types():
    assert schema.PATH.read_text(encoding="utf-8") == schema.text(), (
        "the types of the report have changed: run `python -m attrcheck.report.schema`"
    )


def test_every_field_is_described_and_required_unless_it_has_a_default():
    definitions = schema.schema()["$defs"]
    for name, definition in definitions.items():
        assert definition["description"], name
    whole = definitions["Document"]
    assert set(whole["properties"]) - set(whole["required"]) == {"baseline", "families", "laws"}
    for name, optional in (("BoardEntry", {"best", "letters", "worst"}), ("Agreement", set())):
        required = {*definitions[name]["properties"]} - optional
        assert definitions[name]["required"] == sorted(required)
    of_case = definitions["CaseEntry"]
    assert set(of_case["properties"]) - set(of_case["required"]) == {
        *("caveats", "settled", "data", "weights")
    }
    assert definitions["ScoreEntry"]["required"] == ["status"]


def test_a_type_without_a_schema_is_an_error():
    with pytest.raises(TypeError, match="set"):
        schema._of(set[str], {})


def test_an_empty_report_keeps_the_schema(validate):
    validate(plain(empty(checks=[check("seed", rank_correlation=None)])))


def test_a_report_with_another_field_breaks_it(validate):
    jsonschema = pytest.importorskip("jsonschema")
    for change in ({"another": []}, {"missing": [1]}, {"run": {}}):
        with pytest.raises(jsonschema.ValidationError):
            validate(plain(empty()) | change)


def test_a_real_report_keeps_the_schema(pytester, validate, registries):
    pytester.makeconftest(TINY)
    pytester.makepyfile(test_suite=ITEMS + CHECKS)
    result = pytester.runpytest_inprocess(
        *("-p", "no:cacheprovider", "--attr-report", "--attr-threads=1"),
        *("--attr-datasets=halves", "--attr-protocols=lerf,morf", "--attr-methods=exact,random"),
        *("--attr-checks=contract,dummy_floor,target_sensitivity,seed", "--attr-gate=*.rank <= 2"),
    )
    assert result.parseoutcomes()["passed"] > 4
    report = json.loads((pytester.path / "attr-report" / "report.json").read_text("utf-8"))
    assert report["leaderboard"]
    assert report["checks"]
    assert report["gates"]
    validate(report)
