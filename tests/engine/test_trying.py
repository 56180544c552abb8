"""`attrcheck try`: one method on one case, with what it returns or where it fails."""

import pdb

import pytest

from attrcheck.cli import main
from attrcheck.tensors import batching as memory

CONFTEST = """
import attrcheck

@attrcheck.method("bright")
def bright(model, images, targets):
    return images.abs()

def pytest_attrcheck_register(attrcheck):
    calls = []

    @attrcheck.method("late")
    def late(model, images, targets):
        calls.append(images)
        if len(calls) == 2:
            raise ValueError("boom")
        return images

    @attrcheck.method("broken")
    def broken(model, images, targets):
        return images.view(3, 7)
"""


@pytest.fixture
def run(registries, tmp_path, monkeypatch, capsys):
    """The exit code, output and error lines of `attrcheck try`, in a project of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "conftest.py").write_text(CONFTEST)

    def run(*arguments):
        code = main(["try", *arguments, "--images", "8"])
        return code, *capsys.readouterr()

    return run


def test_maps_are_described(run):
    code, out, _ = run("bright", "--case", "digits-resnet-morf")
    first, batch = out.splitlines()
    assert code == 0
    assert first == "method 'bright' on digits-resnet, which gets the network as it was built"
    assert "batch 1: images [8, 1, 32, 32], maps [8, 32, 32] from " in batch
    assert "0 of them constant" in batch


def test_a_built_in_method_gets_the_prepared_graph(run):
    code, out, _ = run("saliency")
    assert code == 0
    assert "which gets the prepared graph" in out


def test_a_failure_comes_with_its_traceback_and_the_line(run):
    code, out, error = run("broken")
    assert code == 1
    assert "Traceback (most recent call last)" in out
    assert 'conftest.py", line' in out
    assert "return images.view(3, 7)" in out
    assert error.startswith("attrcheck: method 'broken' on digits-resnet raised RuntimeError")
    assert "(at conftest.py:" in error


def test_the_batch_that_fails_is_found(run, monkeypatch):
    monkeypatch.setitem(memory.QUICK_ELEMENTS, "cpu", 4 * 32 * 32)
    code, out, error = run("late")
    assert code == 1
    assert "batch 1: images [4, 1, 32, 32]" in out
    assert "batch 2" not in out
    assert "ValueError: boom" in out
    assert "(at conftest.py:" in error


def test_a_debugger_opens_where_it_fails(run, monkeypatch):
    seen = []
    monkeypatch.setattr(pdb, "post_mortem", seen.append)
    run("broken", "--pdb")
    (trace,) = seen
    while trace.tb_next:
        trace = trace.tb_next
    assert trace.tb_frame.f_code.co_name == "broken"


def test_without_a_failure_the_debugger_steps_through_the_first_batch(run, monkeypatch):
    seen = []

    def runcall(function, *args, **kwargs):
        seen.append((function.__name__, len(args[1])))
        return function(*args, **kwargs)

    monkeypatch.setattr(pdb, "runcall", runcall)
    assert run("bright", "--pdb")[0] == 0
    assert seen == [("bright", 8)]


def test_what_is_not_applicable_says_why(run):
    code, out, _ = run("attention_rollout")
    assert code == 0
    assert "not applicable: the model has no attention" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("brightt",), "did you mean bright?"),
        (("bright", "--conftest", "other.py"), "there is no file other.py"),
        (("bright", "--case", "digits"), "'digits' is not a case"),
        (("bright", "--case", "digits-resnet-mrof"), "did you mean morf"),
    ],
)
def test_what_is_asked_for_must_be_there(run, arguments, words):
    code, _, error = run(*arguments)
    assert code == 1
    assert words in error
