"""A folder of pictures, asked for by name in real runs: workers, masks, a broken picture."""

import json

import numpy as np
import pytest
from PIL import Image

from tests.worlds import ITEMS

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

CONFTEST = """
import torch
from torch import nn
import attrcheck

@attrcheck.model("sides", datasets="halves*")
def sides(dataset):
    "Compares the halves of a picture that is brought to 8 x 8."
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64, 2, bias=False))
    side = torch.ones(3, 8, 8)
    side[..., 4:] = -1
    network[1].weight.data = torch.stack([side.flatten(), -side.flatten()])
    wants = attrcheck.Preprocessing((8, 8), (0.5,) * 3, (0.25,) * 3, resize=(8, 8))
    return attrcheck.Model(network, wants, ("left", "right"))

@attrcheck.method("exact")
def exact(model, images, targets):
    "The contributions to the logit, in one channel."
    inputs = images.clone().requires_grad_()
    model(inputs).gather(1, targets[:, None]).sum().backward()
    return (inputs.grad * images).sum(1, keepdim=True)
"""
RUN = (
    *("-p", "no:cacheprovider", "-p", "no:randomly", "--attr-threads=1", "--attr-report"),
    *("--attr-models=sides", "--attr-methods=exact,random"),
    "--attr-protocols=morf,pointing_game",
)


@pytest.fixture
def project(pytester):
    """Pictures of several sizes, bright on one side, with the masks of these sides."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_suite=ITEMS)
    rng = np.random.default_rng(0)
    for name in ("left", "right"):
        for number in range(6):
            height, width = rng.integers(9, 30, 2)
            values = rng.integers(0, 120, (height, width, 3), dtype=np.uint8)
            bright = np.s_[:, : width // 2] if name == "left" else np.s_[:, (width + 1) // 2 :]
            values[bright] += 120
            mask = np.zeros((height, width), dtype=np.uint8)
            mask[bright] = 1
            for folder, picture in (("val", values), ("val_masks", mask)):
                path = pytester.path / "data" / folder / name / f"{number}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(picture).save(path)
    return pytester


def document(project, folder):
    return json.loads((project.path / folder / "report.json").read_text())


def test_one_process_and_two_workers_agree_and_the_second_run_is_all_from_the_store(project):
    named = "--attr-datasets=halves_2=folder:data/val"
    alone = project.runpytest_subprocess(*RUN, named, "--attr-report-dir=a", "--attr-store=a-store")
    alone.assert_outcomes(passed=2)
    spread = project.runpytest_subprocess(
        *RUN, named, "--attr-report-dir=b", "--attr-store=b-store", "-n2", "--dist=worksteal"
    )
    spread.assert_outcomes(passed=2)
    one, other = document(project, "a"), document(project, "b")
    assert [case["id"] for case in one["cases"]] == [
        "halves_2-sides-morf",
        "halves_2-sides-pointing_game",
    ]
    assert one["cases"] == other["cases"]
    again = project.runpytest_subprocess(*RUN, named, "--attr-report-dir=c", "--attr-store=a-store")
    again.assert_outcomes(passed=2)
    written = {path.name for path in (project.path / "a-store").rglob("*.safetensors")}
    assert written == {path.name for path in (project.path / "b-store").rglob("*.safetensors")}


def test_a_broken_picture_is_named_and_the_rest_of_the_run_goes_on(project):
    (project.path / "data/val/left/3.png").write_bytes(b"<html>")
    result = project.runpytest_subprocess(*RUN, "--attr-datasets=halves=folder:data/val")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*data/val/left/3.png is not a picture*replace it, or remove it*"])
    assert "Traceback" not in result.stdout.str()
    (project.path / "data/val/left/3.png").unlink()
    (project.path / "data/val_masks/left/3.png").unlink()
    result = project.runpytest_subprocess(*RUN, "--attr-datasets=halves=folder:data/val")
    result.assert_outcomes(passed=2)
