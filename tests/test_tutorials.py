"""The tutorials, followed word by word: files are written and commands run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_house import ROOT

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SIGNS_OF_RED = ("BROKEN", " failed")


def steps(text: str) -> list[tuple[str, str, bool]]:
    """Files and commands in order: a kind, what stands there, and whether a command ends red."""
    blocks = BLOCK.findall(text)
    shown = [body if not kind else "" for kind, body in blocks[1:]] + [""]
    return [
        (kind, body, any(sign in output for sign in SIGNS_OF_RED))
        for (kind, body), output in zip(blocks, shown, strict=True)
        if kind
    ]


def follow(tutorial: Path, folder: Path) -> None:
    """Do what a tutorial says; AssertionError, with the output, where a command ends otherwise."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    for kind, body, red in steps(tutorial.read_text(encoding="utf-8")):
        if kind == "python":
            name = body.partition("\n")[0].removeprefix("# ")
            (folder / name).write_text(body, encoding="utf-8")
            continue
        done = subprocess.run(
            ["bash", "-c", body], cwd=folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == int(red), f"{body}\n{done.stdout[-5000:]}\n{done.stderr[-2000:]}"


def test_a_tutorial_is_read_as_files_and_commands():
    text = (
        "Text.\n\n```python\n# a.py\nx = 1\n```\n\n```bash\npytest\n```\n\n```\n1 failed\n```\n\n"
        "```bash\nls\n```\n\n```\nmy.pt\n```\n"
    )
    assert steps(text) == [
        ("python", "# a.py\nx = 1\n", False),
        ("bash", "pytest\n", True),
        ("bash", "ls\n", False),
    ]


@pytest.mark.slow  # minutes
@pytest.mark.parametrize("name", ["method", "classifier", "metric"])
def test_a_tutorial_can_be_followed(name, tmp_path):
    follow(ROOT / "docs/tutorials" / f"{name}.md", tmp_path)
