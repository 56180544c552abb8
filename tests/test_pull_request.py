"""A pull request that makes a method worse, as the action meets it on GitHub."""

import os
import subprocess

import pytest

from tests.actions import GitHub, run_step
from tests.worlds import ITEMS, TINY, method

GOOD = method("mine", "return exact(model, images, targets)")
WORSE = method("mine", "return -exact(model, images, targets)")
INPUTS = {
    "paths": "test_suite.py",
    "args": "-n 0 -p no:cacheprovider -p no:randomly -k 'linear and (lerf or morf)'"
    " --attr-datasets=halves --attr-protocols=lerf,morf --attr-methods=mine,exact,random"
    " --attr-checks=none",
    "gates": "mine.meta_rank >= baseline - 0.1\n",
    "baseline": "baseline.json",
    "token": "secret",
}


@pytest.fixture
def checkout(tmp_path):
    """The repository of an author of a method, with a baseline."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_suite.py").write_text(ITEMS)
    (folder / "conftest.py").write_text(TINY + GOOD)
    done = run_step("Run", folder, {**INPUTS, "gates": "", "baseline": ""})
    assert done.returncode == 0, done.stdout
    command = ["attrcheck", "baseline", "update", "--to", "baseline.json", "--force"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


def push(checkout, github):
    """What the action does for a push: run, comment; returns the exit code and the summary."""
    page = checkout / "summary.md"
    page.unlink(missing_ok=True)
    environment = {
        "GITHUB_STEP_SUMMARY": str(page),
        "GITHUB_REPOSITORY": "me/mine",
        "GITHUB_API_URL": github.url,
    }
    done = run_step("Run", checkout, INPUTS, environment)
    assert run_step("Badge and trend", checkout, INPUTS, environment).returncode == 0
    known = {
        "github.event.pull_request.number": "7",
        "steps.upload.outputs.artifact-url": "https://github.example/artifact",
    }
    commented = run_step("Comment", checkout, INPUTS, environment, **known)
    assert "::warning::" not in commented.stdout, commented.stderr
    return done.returncode, page.read_text()


@pytest.mark.slow
def test_a_method_made_worse_turns_red_with_its_cases_and_the_size_of_the_change(checkout):
    with GitHub() as github:
        assert push(checkout, github)[0] == 0
        [green] = github.comments
        assert "### ✅ attrcheck: all 1 gates hold" in green["body"]
        first = dict(green)

        (checkout / "conftest.py").write_text(TINY + WORSE)
        code, page = push(checkout, github)
        assert code == pytest.ExitCode.TESTS_FAILED
        [comment] = github.comments  # replaced, not repeated
    assert comment["id"] == first["id"]
    assert comment["body"] != first["body"]
    for text in (comment["body"], page):
        assert "### ❌ attrcheck: 1 of 1 gates broken" in text
        assert "- ❌ `mine.meta_rank >= baseline - 0.1`: mine.meta_rank is " in text
        [row] = [line for line in text.splitlines() if line.startswith("| mine ")]
        _, name, before, after, change, worse, better, _ = map(str.strip, row.split("|"))
        assert (name, worse, better) == ("mine", "2", "-")
        assert float(before) > float(after)
        assert float(change) == pytest.approx(float(after) - float(before), abs=0.02)
        moved = next(line for line in text.splitlines() if line.startswith("- mine: Meta-Rank"))
        assert "worse in halves-linear-" in moved
        assert "halves-linear-morf (" in moved
        assert "halves-linear-lerf (" in moved
    assert comment["body"].endswith("[The whole report](https://github.example/artifact)\n")
    assert '"color": "red"' in (checkout / "attr-report" / "badge.json").read_text()
    assert os.path.exists(checkout / "attr-report" / "junit.xml")
