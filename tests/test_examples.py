"""The projects in examples/: small, and green by the commands of their README."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
SHOWN = {
    "own_method": ["all 2 gates hold", "1  * path_gradient"],
    "own_pictures": ["accuracy: pictures-tiny 100.0%", "1 passed"],
    "own_protocol": ["18 passed", "laws: 2 held", "4 passed"],
}
"""What the commands of each example print, in order."""
MOST_LINES = 60


def commands(readme):
    """The lines of the first block for a shell."""
    return re.search(r"```bash\n(.*?)```", readme.read_text("utf-8"), re.DOTALL)[1].splitlines()


def test_every_example_is_run_and_listed():
    folders = {path.name for path in EXAMPLES.iterdir() if path.is_dir()}
    assert folders == SHOWN.keys()
    page = (EXAMPLES / "README.md").read_text("utf-8")
    listed = re.findall(r"^- \[(\w+)\]\((\w+)\)", page, re.MULTILINE)
    assert listed == [(name, name) for name in SHOWN]


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_is_small(name):
    files = [path for path in (EXAMPLES / name).iterdir() if path.is_file()]
    assert sum(len(path.read_text("utf-8").splitlines()) for path in files) <= MOST_LINES


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs_as_its_readme_says(name, tmp_path):
    project = tmp_path / name
    shutil.copytree(EXAMPLES / name, project)
    # As in a shell in which the environment of these tests is active.
    folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
    unasked = {"PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"}
    environment = {name: value for name, value in os.environ.items() if name not in unasked}
    environment |= {"PATH": os.pathsep.join(folders), "OMP_NUM_THREADS": "1"}
    printed = ""
    for command in commands(project / "README.md"):
        done = subprocess.run(
            command.split(), cwd=project, env=environment, capture_output=True, text=True
        )
        printed += done.stdout
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    wanted = ".*".join(map(re.escape, SHOWN[name]))
    assert re.search(wanted, printed, re.DOTALL), printed
    assert (project / "attr-report" / "report.html").is_file()
