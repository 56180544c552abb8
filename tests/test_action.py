"""The action for GitHub: its file is sound, its steps run, its comment is replaced."""

import re
import subprocess

import pytest

from attrcheck.cli import main
from attrcheck.report import files
from tests.actions import ACTION, EXPRESSION, GitHub, action, run_step, shell_steps
from tests.report.samples import empty

KNOWN = re.compile(r"inputs\.|github\.|runner\.os|steps\.")


@pytest.fixture
def report(tmp_path, monkeypatch):
    """A written report, and where GitHub says what to do with it."""
    files.write(empty(), tmp_path / "attr-report")
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("GITHUB_REPOSITORY", "me/mine")
    return tmp_path / "attr-report"


def test_every_expression_is_of_something_that_there_is():
    text, spec = ACTION.read_text(encoding="utf-8"), action()
    expressions = EXPRESSION.findall(text)
    assert all(KNOWN.match(expression) for expression in expressions)
    conditions = [step.get("if", "") for step in spec["runs"]["steps"]]
    used = set(re.findall(r"inputs\.([\w-]+)", " ".join([*expressions, *conditions])))
    assert used == {*spec["inputs"]}
    steps = set(re.findall(r"steps\.(\w+)\.", text))
    assert steps <= {step.get("id") for step in spec["runs"]["steps"]}
    assert all(value["description"] for value in spec["inputs"].values())


def test_steps_are_whole_and_no_script_quotes_an_expression():
    spec = action()
    assert spec["runs"]["using"] == "composite"
    for step in spec["runs"]["steps"]:
        assert step["name"]
        assert ("run" in step) == ("shell" in step) != ("uses" in step)
        assert re.fullmatch(r"actions/[\w/-]+@v\d+", step.get("uses", "actions/x@v1"))
    for step in shell_steps().values():
        assert not EXPRESSION.search(step["run"])  # what others wrote would become code
        checked = subprocess.run(["bash", "-n"], input=step["run"], text=True, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_a_comment_is_added_once_and_then_replaced(report, monkeypatch, capsys):
    with GitHub() as github:
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        github.comments = [{"id": n, "body": "hello"} for n in range(1, 131)]
        for _ in range(2):
            assert main(["comment", str(report), "--pull", "7", "--link", "https://there"]) == 0
        [mine] = [comment for comment in github.comments if comment["body"] != "hello"]
        assert main(["comment", str(report), "--pull", "7", "--mark", "other -->"]) == 0
    assert mine["body"].startswith("<!-- attrcheck: report -->\n### ✅ attrcheck: no gates to keep")
    assert mine["body"].endswith("\n[The whole report](https://there)\n")
    thread = "/repos/me/mine/issues/7/comments"
    listed = [f"GET {thread}"] * 2  # 130 comments are two pages
    assert github.requests[:6] == [
        *listed,
        f"POST {thread}",
        *listed,
        "PATCH /repos/me/mine/issues/comments/131",
    ]
    assert len(github.comments) == 132  # another mark is another comment
    assert github.comments[-1]["body"].startswith("<!-- attrcheck: other____ -->\n")
    assert capsys.readouterr().out == "there\n" * 3


def test_what_is_wrong_is_said_in_one_line(report, monkeypatch, capsys):
    with GitHub(status=403) as github:
        monkeypatch.setenv("GITHUB_API_URL", github.url)
        assert main(["comment", str(report), "--pull", "7"]) == 1
    assert main(["comment", str(report), "--pull", "7"]) == 1  # nobody answers any more
    monkeypatch.delenv("GITHUB_TOKEN")
    assert main(["comment", str(report), "--pull", "7"]) == 1
    refused, gone, unknown = capsys.readouterr().err.splitlines()
    assert "answered 403" in refused
    assert "pull-requests: write" in refused
    assert "cannot be asked" in gone
    assert "GITHUB_TOKEN must be given" in unknown


def test_a_comment_that_fails_does_not_fail_the_job(tmp_path):
    known = {"github.event.pull_request.number": "7"}
    repository = {"GITHUB_REPOSITORY": "me/mine"}
    done = run_step("Comment", tmp_path, {"token": "secret"}, repository, **known)
    assert done.returncode == 0
    assert "::warning::" in done.stdout
    assert "attr-report cannot be read" in done.stderr
