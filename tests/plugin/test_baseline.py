"""A method that was made worse turns the run red, with its cases and the size of the change."""

import pytest

from attrcheck.cli import main
from attrcheck.engine.wire import loads
from attrcheck.report.comparison import Comparison
from tests.conftest import forgetting
from tests.worlds import ITEMS, method

pytest_plugins = ["pytester"]
RUN = (
    *("-p", "no:cacheprovider", "-p", "no:randomly", "--attr-report", "--attr-threads=1"),
    *("--attr-datasets=digits", "--attr-models=resnet", "--attr-protocols=morf,lerf"),
    *("--attr-methods=mine,saliency,random", "--attr-images=8", "--attr-isolate=off"),
)
BASELINE = "--attr-baseline=attr-baseline.json"
GOOD = """inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return inputs.grad.abs()"""
BAD = "return -images.abs()"
CASES = ["digits-resnet-lerf", "digits-resnet-morf"]


@pytest.fixture
def project(pytester):
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def run(project, body, *arguments):
    """In this process, with `mine` as told; what the conftest registers is forgotten afterwards."""
    project.makeconftest("import attrcheck\n" + method("mine", body))
    with forgetting():
        return project.runpytest_inprocess(*RUN, *arguments)


def accept(project, *arguments):
    """Make the last report the baseline."""
    report = str(project.path / "attr-report")
    return main(["baseline", "update", report, "--to", "attr-baseline.json", *arguments])


def comparison(project):
    text = (project.path / "attr-report" / "comparison.json").read_text()
    return loads(Comparison, text)


GATES = ("--attr-gate=mine.meta_rank >= baseline - 0.1", "--attr-gate=*.score.*-morf <= baseline")


def test_a_method_made_worse_turns_the_run_red_and_one_made_better_does_not(project, capsys):
    assert run(project, GOOD).ret == 0
    assert accept(project, "--force") == 0
    worse = run(project, BAD, BASELINE, *GATES)
    assert worse.ret == pytest.ExitCode.TESTS_FAILED
    said = worse.stdout.str()
    [change] = comparison(project).of("mine", "worse")[:1]
    assert {c.case for c in comparison(project).of("mine", "worse")} == {*CASES}
    assert f"FAILED attrcheck::gate[{GATES[0].partition('=')[2]}]" in said
    size = f"{change.difference:+.3g} [{change.low:+.3g}, {change.high:+.3g}]"
    for text in (said, (project.path / "attr-report" / "report.md").read_text()):
        assert "mine.meta_rank is " in text
        assert "changed by -" in text
        assert change.case in text
        assert size.replace("[", "").partition(",")[0] in text.replace("[", "")
    assert "mine.score.digits-resnet-morf is" in said
    assert "lower is better" in said
    page = (project.path / "attr-report" / "comparison.html").read_text()
    assert "digits-resnet-morf" in page

    # What is worse now is accepted only by force; against it, the old one is an improvement.
    capsys.readouterr()
    assert accept(project) == 1
    assert "is not accepted: gate broken: mine.meta_rank >= baseline" in capsys.readouterr().err
    assert accept(project, "--force") == 0
    assert "2 worse" in capsys.readouterr().out
    better = run(project, GOOD, BASELINE, *GATES)
    assert better.ret == 0
    better.stdout.fnmatch_lines(["gate holds: mine.meta_rank >= baseline - 0.1 (*changed by +*"])
    assert comparison(project).of("mine", "better")
    assert not comparison(project).of("mine", "worse")
    assert accept(project) == 0
    assert "2 better" in capsys.readouterr().out


def test_a_run_like_its_baseline_moves_nothing(project, capsys):
    assert run(project, GOOD).ret == 0
    assert accept(project, "--force") == 0
    again = run(project, GOOD, BASELINE, "--attr-gate=*.score.* == baseline")
    assert again.ret == 0
    again.stdout.fnmatch_lines(["against attr-baseline.json: nothing moved in 2 cases x 3 methods"])
    assert comparison(project).changes == []
    without = run(project, GOOD)
    assert without.ret == 0
    assert not list((project.path / "attr-report").glob("comparison*"))


def test_a_baseline_of_other_images_makes_its_gates_red_and_says_why(project):
    assert run(project, GOOD).ret == 0
    assert accept(project, "--force") == 0
    gates = ("--attr-gate=mine.rank <= 3", "--attr-gate=mine.rank <= baseline")
    other = run(project, GOOD, BASELINE, "--attr-images=6", *gates)
    assert other.ret == pytest.ExitCode.TESTS_FAILED
    failed = [line for line in other.outlines if line.startswith("FAILED")]
    assert [line.split(" - ")[0] for line in failed] == [
        "FAILED attrcheck::gate[mine.rank <= baseline]"
    ]
    other.stdout.fnmatch_lines(
        [
            "mine.rank is not to be compared with the baseline: digits-resnet-lerf, "
            "digits-resnet-morf: other images: 8 and 6"
        ]
    )
    assert not list((project.path / "attr-report").glob("comparison*"))


REFUSED = {
    "no baseline": (BASELINE, "--attr-baseline: there is no baseline at *attr-baseline.json: *"),
    "another file": ("--attr-baseline=broken.json", "--attr-baseline: *broken.json is not a rep*"),
    "method": ("--attr-gate=mien.rank <= 3", "gate 'mien.rank <= 3': the run has no method *"),
    "protocol": ("--attr-gate=z*.seed > 0", "*the run has no protocol 'z*'; there are: *"),
    "case": ("--attr-gate=mine.score.digits-resnet-mofr > 0", "*mean digits-resnet-morf*"),
    "gate alone": ("--attr-gate=mine.rank <= baseline", "*there is no baseline to compare with: *"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_a_usage_error_before_anything_runs(project, what):
    project.path.joinpath("broken.json").write_text("{")
    option, why = REFUSED[what]
    _refused(project, run(project, GOOD, option), why)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["no baseline", "method"])
def test_under_xdist_it_is_so_before_any_worker_runs_anything(project, what):
    project.makeconftest("import attrcheck\n" + method("mine", GOOD))
    option, why = REFUSED[what]
    _refused(project, project.runpytest_subprocess(*RUN, "-n", "2", option), why)


def _refused(project, result, why):
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {why}"])
    assert "accuracy" not in result.stdout.str()
    assert not (project.path / "attr-report").exists()


def test_in_a_file_they_leave_other_tests_alone(project):
    project.makeini("[pytest]\nattr_gate = nobody.rank <= baseline\nattr_baseline = nowhere.json")
    project.makepyfile(test_suite="def test_other(): pass")
    assert run(project, GOOD).ret == 0


def test_a_case_that_is_deselected_leaves_its_gate_undecided(project):
    gate = "--attr-gate=mine.score.digits-resnet-morf <= 1"
    result = run(project, GOOD, gate, "-k", "lerf")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["mine.score.digits-resnet-morf is missing, wanted <= 1 *"])


def test_a_suite_with_nothing_to_check_is_prepared_like_any_other(project):
    project.makepyfile(test_suite=ITEMS + "\ndef test_check(attr_check):\n    attr_check.run()\n")
    result = run(project, GOOD, "--attr-checks=none", "--attr-gate=mine.rank <= 3")
    result.assert_outcomes(passed=3, deselected=1)
