"""The file of known failures: what it says exists, and a report that says otherwise is noticed."""

import subprocess
import sys
from collections import Counter

import pytest

from attrcheck.checks import check as checks
from attrcheck.checks.known import KnownFailure, drift, known_failures, reason
from attrcheck.datasets import dataset as datasets
from attrcheck.methods import method as methods
from attrcheck.models import model as models
from attrcheck.protocols import protocol as protocols

SOUND = KnownFailure(
    "half_images", "soundness", "few images", "rank_correlation", 0.3, "default",
    on="digits-vgg", failing=3, of=4,
)  # fmt: skip
ROLLOUT = KnownFailure(
    "target_sensitivity", "attention_rollout", "no class", "rank_correlation", 1.0, "default",
    on="shapes-vit",
)  # fmt: skip
VGG = KnownFailure(
    "tuning", "digits-vgg", "all are sure", "moved", 0.007, "default", tolerance=0.001
)


def result(check, subject, status="known_failure", protocol="", on="", **figures):
    return {
        "check": check,
        "subject": subject,
        "status": status,
        "protocol": protocol,
        "on": on,
        "figures": figures,
    }


def halves(*statuses, value=0.3):
    models = ("vgg", "vit", "bcos", "resnet")
    return [
        result("half_images", f"digits-{model}-soundness", status, "soundness",
               rank_correlation=value if model == "vgg" else 0.5)
        for model, status in zip(models, statuses, strict=True)
    ]  # fmt: skip


def report(*results, profile="default"):
    return {"settings": {"profile": profile}, "checks": list(results)}


@pytest.mark.parametrize("failure", known_failures(), ids=str)
def test_every_entry_names_what_is_registered_and_says_why(failure):
    assert failure.check in checks
    over = checks.get(failure.check).over
    pairs = [f"{data}-{model}" for data in datasets for model in models]
    subjects = {"methods": methods, "cases": protocols, "protocols": protocols, "models": pairs}
    assert failure.subject in subjects[over]
    assert len(failure.reason) > 10
    assert failure.figure
    assert failure.profile in ("default", "full", "none")
    assert (failure.on in pairs) == (over in ("methods", "cases"))
    assert 0 < failure.failing <= failure.of
    assert reason(failure.check, failure.subject) == failure.reason


def test_there_are_no_duplicates():
    count = Counter((failure.check, failure.subject) for failure in known_failures())
    assert set(count.values()) == {1}
    assert list(count) == sorted(count)


def test_reading_the_file_needs_no_torch():
    code = "import sys; from attrcheck.checks import known; known.reason('seed', 'morf'); "
    code += "assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_is_not_on_file_is_not_known():
    assert reason("contract", "gradient") is None


def test_no_built_in_declares_failures_of_its_own():
    for registry in (checks, methods, protocols):
        built_in = [name for name in registry if not registry.is_own(name)]
        assert not [name for name in built_in if registry.get(name).known_failures]


def test_a_report_as_on_file_has_not_drifted():
    failing = "known_failure"
    results = halves(failing, failing, failing, "passed", value=0.34)
    results += [
        result("target_sensitivity", "attention_rollout", on="shapes-vit", rank_correlation=1.0),
        result("tuning", "digits-vgg", moved=0.0075),
    ]
    assert drift(report(*results), [SOUND, ROLLOUT, VGG]) == []


def test_what_no_longer_fails_is_named():
    results = halves("passed", "passed", "passed", "passed")
    results += [result("tuning", "digits-vgg", "passed", moved=0.007)]
    assert drift(report(*results), [SOUND, VGG]) == [
        "half_images of soundness: no longer fails",
        "tuning of digits-vgg: no longer fails",
    ]


def test_figures_that_moved_are_named():
    failing = "known_failure"
    results = halves(failing, "passed", "passed", "passed", value=0.36)
    results += [
        result("target_sensitivity", "attention_rollout", on="shapes-vit"),
        result("tuning", "digits-vgg", moved=0.0085),
    ]
    assert drift(report(*results), [SOUND, ROLLOUT, VGG]) == [
        "half_images of soundness: 1 of 4 fail, on file 3",
        "half_images of soundness: rank_correlation is 0.36, on file 0.3",
        "target_sensitivity of attention_rollout: rank_correlation is None, on file 1.0",
        "tuning of digits-vgg: moved is 0.0085, on file 0.007",
    ]


def test_what_was_not_run_cannot_drift():
    assert drift(report(), [SOUND]) == []
    assert drift(report(*halves(*["passed"] * 4), profile="smoke"), [SOUND]) == []
    assert drift(report(*halves(*["not_applicable"] * 4)), [SOUND]) == []
    elsewhere = result("target_sensitivity", "attention_rollout", on="digits-vit")
    assert drift(report(elsewhere), [ROLLOUT]) == []


def test_part_of_the_cases_says_nothing_of_their_number():
    assert drift(report(*halves("known_failure", *["passed"] * 3)[:2]), [SOUND]) == []


def test_the_file_of_the_package_is_the_default():
    dropped = result("tuning", "digits-vgg", "passed")
    assert drift(report(dropped)) == ["tuning of digits-vgg: no longer fails"]
