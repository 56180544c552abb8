"""The plugin as a user meets it: options, items, failures, gates, the store, silence."""

import json
import os
import shutil

import pytest

from attrcheck.report import exports
from attrcheck.store.files import temporary_name
from tests.conftest import forgetting
from tests.worlds import ITEMS, TINY, method

pytest_plugins = ["pytester"]
PLAIN = ("-p", "no:cacheprovider", "-p", "no:randomly")
"""Nothing of pytest's own is left behind, and items run in their order."""


@pytest.fixture
def project(pytester):
    """A user's project with the tiny conftest."""
    pytester.makeconftest(TINY)
    pytester.makepyfile(test_suite=ITEMS)
    return pytester


def add(project, name, body):
    """One more method in the project's conftest."""
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text() + method(name, body))


def run(project, *arguments):
    """Run the project's suite in this process, on its own dataset and methods.

    What its conftest registers is forgotten afterwards.
    """
    mine = ",mine*" if "mine" in (project.path / "conftest.py").read_text() else ""
    chosen = (
        "--attr-datasets=halves",
        "--attr-protocols=lerf,morf",
        f"--attr-methods=exact,random{mine}",
        "--attr-threads=1",
    )
    with forgetting():
        return project.runpytest_inprocess(*PLAIN, *chosen, *arguments)


def report(project):
    return json.loads((project.path / "attr-report" / "report.json").read_text())


def test_cases_are_items_with_readable_ids(project):
    result = run(project, "--collect-only", "-q")
    lines = [line for line in result.outlines if "::" in line]
    assert lines == [
        f"test_suite.py::test_case[halves-{model}-{protocol}]"
        for model in ("linear", "steep")
        for protocol in ("lerf", "morf")
    ]
    run(project, "--collect-only", "-q", "-k", "steep and morf").stdout.fnmatch_lines(
        ["*halves-steep-morf*", "*1/4 tests collected*"]
    )


def test_a_run_ranks_and_reports(project):
    result = run(project, "--attr-report")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(
        [
            "*4 cases x 2 methods, profile default*",
            "*#*method*Meta-Rank*",
            "*1*exact*",
            "*2*random*",
        ]
    )
    assert max(len(line) for line in result.outlines if "exact" in line) <= 100
    document = report(project)
    assert {"schema", "run", "settings", "cases", "leaderboard", "pairwise", "checks", "gates"} <= (
        document.keys()
    )
    assert [entry["method"] for entry in document["leaderboard"]] == ["exact", "random"]
    case = document["cases"][0]
    assert case["id"] == "halves-linear-lerf"
    assert (case["dataset"], case["model"], case["protocol"]) == ("halves", "linear", "lerf")
    assert case["images"] == 30
    assert case["higher_is_better"] is True
    exact = case["scores"]["exact"]
    assert exact["low"] <= exact["score"] <= exact["high"]
    assert exact["rank"] == 1
    assert len(exact["curve"]["x"]) == len(exact["curve"]["y"])
    assert r"| \* exact" in (project.path / "attr-report" / "report.md").read_text()


def test_without_the_flag_only_the_store_has_the_report(project):
    result = run(project)
    result.assert_outcomes(passed=4)
    result.stdout.no_fnmatch_line("*Meta-Rank*")
    assert not (project.path / "attr-report").exists()
    document, details = exports.read(project.path / ".attrcheck")
    assert document.leaderboard[0].method == "exact"
    assert details.exhibits


def test_a_partial_run_says_so(project):
    result = run(project, "--attr-report", "-k", "morf")
    result.stdout.fnmatch_lines(["*PARTIAL: 2 of * cases, 2 of * methods: exact, random*"])
    assert report(project)["settings"]["partial"] is True


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--attr-methods=saliancy", "*did you mean saliency*"),
        ("--attr-methods=!*", "*selects no method*"),
        ("--attr-datasets=nowhere", "*no dataset is called 'nowhere'*"),
        ("--attr-models=restnet", "*did you mean resnet*"),
        ("--attr-protocols=mrof", "*did you mean morf*"),
        ("--attr-profile=huge", "*--attr-profile takes smoke, default, full, not huge*"),
        ("--attr-images=0", "*--attr-images must be at least 1, not 0*"),
        ("--attr-images=many", "*invalid int value*"),
        ("--attr-threads=0", "*--attr-threads must be at least 1*"),
        ("--attr-device=gpu", "*--attr-device takes auto, cpu, cuda, cuda:K or mps, not gpu*"),
        ("--attr-device=cuda:7", "*--attr-device cuda:7: there are * CUDA devices here*"),
        ("--attr-precision=half", "*--attr-precision takes float32, tf32, bfloat16, not half*"),
        ("--attr-gate=exact.meta_rnak >= 0", "*did you mean meta_rank*"),
        ("--attr-gate=exact", "*it has no comparison*"),
    ],
)
def test_bad_options_are_usage_errors(project, option, says):
    result = run(project, option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([says])


def test_a_selection_that_leaves_no_case_is_a_usage_error(project):
    result = run(project, "--attr-models=resnet")  # no weights for the user's dataset
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*none of the models selected knows any of the datasets*"])


def test_options_have_ini_twins(project):
    project.makepyprojecttoml(
        """
        [tool.pytest]
        attr_images = 7
        attr_report = true
        attr_report_dir = "out"
        attr_gate = ["exact.rank == 1", "random.rank == 1"]
        """
    )
    result = run(project)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["FAILED attrcheck::gate?random.rank == 1? - random.rank is 2, *"])
    document = json.loads((project.path / "out" / "report.json").read_text())
    assert document["cases"][0]["images"] == 7
    assert [gate["passed"] for gate in document["gates"]] == [True, False]


def test_gates_turn_a_run_red_or_leave_it_green(project):
    kept = run(
        project, "--attr-gate", "exact.meta_rank >= 0", "--attr-gate", "exact.beats_random == all"
    )
    assert kept.ret == 0
    kept.assert_outcomes(passed=6)
    broken = run(project, "--attr-gate", "random.meta_rank >= 0", "--junitxml=junit.xml")
    assert broken.ret == pytest.ExitCode.TESTS_FAILED
    broken.stdout.fnmatch_lines(["random.meta_rank is -*, wanted >= 0"])
    assert "gate[random.meta_rank" in (project.path / "junit.xml").read_text()
    broken.stdout.no_fnmatch_line("*1[0-9][1-9]%*")


def test_a_gate_on_nobody_is_an_error_before_anything_runs(project):
    result = run(project, "--attr-gate", "exakt.meta_rank >= 0")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*gate 'exakt.meta_rank >= 0': *did you mean exact?*"])
    assert not list(project.path.glob(".attrcheck/records"))


BROKEN = {
    "raise ValueError('out of luck')": "*mine*raised ValueError*'h0'*out of luck*",
    "return images[:, 0] / 0": "*mine*not finite for image 'h0'*",
    "return images[:, 0, 0]": "*mine*returned a tensor of shape [[]30, 8]*",
    "return images * 0": "*mine*constant map for image 'h0'*",
    "model.train(); return images": "*mine*changed the mode of the model*",
    "next(model.parameters()).data.mul_(2); return images": "*mine*changed the weights*",
    "model.register_forward_hook(print); return images": "*mine*left hooks on the model*",
    "images.mul_(2); return images": "*mine*changed its input*",
    "return 'map'": "*mine*returned str*",
}


@pytest.mark.parametrize("body", BROKEN)
def test_a_broken_method_fails_alone_and_by_name(project, body):
    add(project, "mine", body)
    result = run(project, "--attr-report", "--attr-models=linear")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"failed": 1, "repeated": 1}  # two cases, one cause
    result.stdout.fnmatch_lines([f"halves-linear-lerf: method '{BROKEN[body][1:]}"])
    result.stdout.fnmatch_lines(["*1*exact*", "*2*random*"])  # the others have their places
    outcome = report(project)["cases"][0]["scores"]
    assert outcome["mine"]["status"] == "error"
    assert outcome["exact"]["status"] == "ok"


def test_a_hook_registers_like_the_decorator(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + """
def pytest_attrcheck_register(attrcheck):
    @attrcheck.method("mine_by_hook")
    def mine_by_hook(model, images, targets):
        return images
"""
    )
    result = run(project, "--attr-report")
    result.stdout.fnmatch_lines(["*4 cases x 3 methods*", "*mine_by_hook*"])


def test_a_second_run_computes_nothing_and_a_new_method_only_itself(project):
    add(project, "mine_counts", "open('calls', 'a').write('x'); return images")
    run(project).assert_outcomes(passed=4)
    calls = project.path / "calls"
    assert calls.read_text() == "xx"  # one batch on each of two models; protocols share the maps
    first = {path.name: path.stat().st_mtime_ns for path in project.path.rglob("*.safetensors")}
    run(project, "--attr-report").assert_outcomes(passed=4)
    assert calls.read_text() == "xx"
    again = {path.name: path.stat().st_mtime_ns for path in project.path.rglob("*.safetensors")}
    assert again == first
    run(project, "--attr-fresh").assert_outcomes(passed=4)
    assert calls.read_text() == "xxxx"


@pytest.mark.parametrize(("kind", "name"), [("records", "exact"), ("results", "morf")])
def test_a_damaged_file_is_reported_set_aside_and_computed_again(project, kind, name):
    run(project, "--attr-report")
    before = report(project)
    store = project.path / ".attrcheck"
    record = next((store / kind).rglob(f"{name}-*.safetensors"))
    if kind == "records":  # nobody reads them where the result is known
        shutil.rmtree(store / "results")
    record.write_bytes(record.read_bytes()[:50])
    result = run(project, "--attr-report")
    result.assert_outcomes(passed=4, warnings=1)
    result.stdout.fnmatch_lines(
        [f"*StoreWarning: *{record.name}: not a safetensors file*computed again*"]
    )
    assert len(list((project.path / ".attrcheck" / "aside").iterdir())) == 1
    after = report(project)
    assert after["cases"] == before["cases"]


def test_an_unwritable_store_is_a_clear_failure(project):
    project.makefile("", blocked="a file, not a folder")
    result = run(project, "--attr-store=blocked/store")
    # Four cases for one cause, and the run is incomplete.
    assert result.parseoutcomes() == {"failed": 2, "repeated": 3}
    result.stdout.fnmatch_lines(["*the store *blocked/store cannot be written to*--attr-store*"])


def test_an_unwritable_report_folder_still_prints_the_board(project):
    project.makefile("", blocked="a file, not a folder")
    result = run(project, "--attr-report", "--attr-report-dir=blocked/out")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*report.json cannot be written to *blocked/out*--attr-report-dir*", "*1*exact*"]
    )


def test_a_model_with_a_wrong_output_is_named(project):
    conftest = project.path / "conftest.py"
    text = conftest.read_text().replace("network[1].weight.data *= 10", "network = nn.Flatten()")
    conftest.write_text(text)
    result = run(project, "--attr-models=steep")
    result.stdout.fnmatch_lines(
        ["*halves-steep-lerf: model 'steep' on dataset 'halves': the output must be logits*"]
    )


def test_labels_that_do_not_fit_the_images_are_named(project):
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text().replace("images, labels, 2", "images, labels[1:], 2"))
    result = run(project)
    result.stdout.fnmatch_lines(["*dataset 'halves': 30 images but 29 labels*"])


def test_what_a_user_skips_is_not_missing(project):
    project.makepyfile(
        test_suite="""
        import pytest

        @pytest.mark.skip(reason="not today")
        def test_later(attr_case):
            attr_case.run()

        def test_case(attr_case):
            if attr_case.case.protocol == "morf":
                pytest.skip("nor this")
            attr_case.run()
        """
    )
    result = run(project, "--attr-report")
    result.assert_outcomes(passed=2, skipped=6)
    assert report(project)["missing"] == []


def test_what_killed_writers_left_is_swept_by_the_next_run(project):
    left = project.path / ".attrcheck" / "maps" / "halves-linear" / temporary_name("slope")
    left.parent.mkdir(parents=True)
    left.touch()
    os.utime(left, (1, 1))
    run(project, "--collect-only")
    assert left.exists()
    run(project, "--attr-models=linear").assert_outcomes(passed=2)
    assert not left.exists()
