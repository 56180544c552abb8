"""`--attr-executor ray` without a cluster: what is refused, and what other hosts are told."""

import importlib.util
import os
import sys

import pytest

from attrcheck.errors import AttrcheckError
from attrcheck.plugin.elsewhere import Project
from tests.plugin.test_plugin import PLAIN, project, run

__all__ = ["project"]
pytest_plugins = ["pytester"]


@pytest.fixture
def installed(monkeypatch):
    """Say whether Ray is installed."""
    find_spec = importlib.util.find_spec

    def installed(there):
        def found(name, *more):
            return (there or None) if name == "ray" else find_spec(name, *more)

        monkeypatch.setattr(importlib.util, "find_spec", found)

    return installed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--attr-executor=slurm",), "--attr-executor takes local or ray, not slurm"),
        (("--attr-executor=ray", "-n2"), "--attr-executor ray with -n: Ray has the workers*"),
        (("--attr-executor=ray", "--attr-shard=1/2"), "--attr-executor ray with --attr-shard: *"),
        (("--attr-executor=ray", "--attr-ray-cpus=0"), "--attr-ray-cpus must be more than 0"),
        (
            ("--attr-executor=ray", "--attr-ray-gpus=1.5"),
            "--attr-ray-gpus takes a whole number or a part of 1, not 1.5",
        ),
        (("--attr-executor=ray", "--attr-ray-cpus=few"), "--attr-ray-cpus takes*not few"),
        (("--attr-executor=ray", "--attr-ray-gpus=inf"), "--attr-ray-gpus takes*not inf"),
        (("--attr-executor=ray", "--attr-ray-tasks=0"), "*ray_tasks must be at least 1, not 0"),
    ],
)
def test_what_cannot_be_is_a_usage_error(project, installed, arguments, words):
    installed(True)
    result = run(project, *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {words}"])


def test_without_ray_it_is_said_in_a_line_how_to_get_it(project, installed):
    installed(False)
    project.makepyprojecttoml('[tool.pytest]\nattr_executor = "ray"')
    result = run(project)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert result.errlines == [
        "ERROR: --attr-executor ray needs Ray: pip install 'attrcheck[ray]'",
        "",
    ]


@pytest.fixture
def elsewhere(pytester, monkeypatch):
    """What another process is told of the project."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def elsewhere(*arguments, folder=str(pytester.path)):
        return Project("run", folder, arguments, ("/nowhere/lib",), {"PYTEST_ADDOPTS": ""}, 1)

    monkeypatch.setenv("PYTEST_ADDOPTS", "")
    return elsewhere


def test_a_host_without_the_project_says_so(elsewhere):
    with pytest.raises(AttrcheckError, match=r"cannot enter /nowhere .*every node needs the"):
        elsewhere(folder="/nowhere").load()


def test_a_host_that_cannot_collect_says_why(pytester, elsewhere):
    pytester.makeconftest("import a_library_that_is_not_there")
    with pytest.raises(AttrcheckError, match=r"(?s)cannot collect .*a_library_that_is_not_there"):
        elsewhere().load()


def test_a_host_that_knows_the_project_runs_and_writes_nothing(project, registries, elsewhere):
    chosen = ("--attr-datasets=halves", "--attr-methods=exact", "--attr-report", *PLAIN[:2])
    settings = elsewhere(*chosen, "--junitxml=junit.xml", "--attr-timeout=7").load()
    assert settings.methods == ("exact",)
    assert (settings.run, settings.timeout, settings.threads) == ("run", 7, 1)
    assert "/nowhere/lib" in sys.path
    assert sorted(os.listdir(project.path)) == ["conftest.py", "test_suite.py"]
