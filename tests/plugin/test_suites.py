"""A paper's suite from end to end, on a data folder of the same layout with tiny pictures."""

import json

import pytest

from attrcheck.papers import load
from tests.papers.data_folder import cifar100, empty_caches, pictures, weights
from tests.plugin.test_plugin import PLAIN

pytest_plugins = ["pytester"]

ITEMS = """
def test_case(attr_case):
    attr_case.run()

def test_protocol(attr_protocol_check):
    attr_protocol_check.run()
"""


@pytest.fixture
def project(pytester, registries, monkeypatch):
    """A project with a data folder: Food-101 with weights for ResNet-18, and RESISC45 without."""
    empty_caches(monkeypatch, pytester.path)
    pytester.makepyfile(test_suite=ITEMS)
    for name in ("food101", "resisc45"):
        pictures(pytester.path / "data" / name / "val")
    weights(pytester.path / "data/weights/food101/resnet18.safetensors")
    return pytester


def run(project, *arguments):
    return project.runpytest_inprocess(*PLAIN, "--attr-threads=1", *arguments)


def report(project):
    return json.loads((project.path / "attr-report/report.json").read_text())


def test_a_suite_runs_what_is_there_and_says_what_is_not(project):
    result = run(
        project,
        "--attr-suite=metarank",
        "--attr-images=2",
        "--attr-methods=saliency,input_x_gradient",
        "--attr-checks=half_images",
        "--attr-report",
    )
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        [
            "attrcheck: suite metarank, 26 cases: On the Evaluation Consistency*",
            "missing * should lie in *data * what to do",
            "dataset imagenet * imagenet/val *unpack the validation images*",
            "weights of vgg19 on food101 *attrcheck train --datasets food101 --models*",
            "2 cases x 2 methods, suite metarank, profile full, 2 images per case, seed 0",
            "PARTIAL: 2 of 26 cases, 2 of 8 methods: *",
            "not here: dataset imagenet, dataset places365, weights of resnet18 on resisc45, *",
        ]
    )
    document = report(project)
    assert [case["id"] for case in document["cases"]] == [
        "food101-resnet18-lerf",
        "food101-resnet18-morf",
    ]
    settings = document["settings"]
    assert (settings["suite"], settings["partial"], len(settings["gaps"])) == ("metarank", True, 14)


def test_collected_are_the_cases_that_are_there(project):
    result = run(project, "--attr-suite=metarank", "--collect-only", "-q", "test_suite.py")
    lines = [line for line in result.outlines if "test_case" in line]
    assert lines == [
        f"test_suite.py::test_case[food101-resnet18-{protocol}]" for protocol in ("lerf", "morf")
    ]


def test_an_option_gives_a_dataset_of_the_suite_another_place(project):
    (project.path / "data/food101").rename(project.path / "elsewhere")
    result = run(
        project,
        "--attr-suite=metarank",
        "--attr-datasets=food101=folder:elsewhere/val",
        "--collect-only",
        "-q",
    )
    result.stdout.fnmatch_lines(["*test_case?food101-resnet18-lerf?"])


def test_a_suite_of_which_nothing_is_there_is_a_usage_error_with_the_table(project):
    result = run(project, "--attr-suite=soundness", "--attr-data=nowhere")
    assert result.ret == 4
    result.stderr.fnmatch_lines(
        [
            "*nothing of the suite soundness is here:",
            "missing * should lie in *nowhere *what to do",
            "dataset imagenet * imagenet/val *",
        ]
    )


def test_an_unknown_suite_is_a_usage_error(project):
    result = run(project, "--attr-suite=metaronk")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["*--attr-suite: no suite is called 'metaronk'*metarank*"])


TINY = """
import torch
from torch import nn
import attrcheck

FRAME = attrcheck.Preprocessing(size=(16, 16), resize=16, mean=(0.5,) * 3, std=(0.25,) * 3)

def tiny(name, datasets):
    @attrcheck.model(name, datasets=datasets)
    def build(data):
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(3, 4, 3, 2, 1),
            nn.ReLU(),
            nn.Conv2d(4, 6, 3, 1, 1),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(6, data.classes),
        )
        return attrcheck.Model(network, FRAME)
"""


@pytest.fixture
def in_small(pytester, registries, monkeypatch):
    """A project that gives tiny networks the names that suites use, and all datasets in small."""
    empty_caches(monkeypatch, pytester.path)
    pytester.makepyfile(test_suite=ITEMS)
    data = pytester.path / "data"
    for name in ("food101", "resisc45", "imagenet"):
        pictures(data / name / "train", seed=1)
        pictures(data / name / "val")
    pictures(data / "places365/val")
    cifar100(data, monkeypatch)
    return pytester


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suite", "models", "checks", "cases", "of"),
    [
        ("metarank", ["resnet18", "vgg19"], "half_images,seed", 14, 26),
        ("idsds", ["resnet18", "fixup_resnet50"], "tuning,measured_output", 4, 32),
        ("soundness", ["vgg16"], "half_images", 4, 4),
        ("reproduction", ["vgg11", "cifar100_resnet20"], "dummy_floor,measured_output", 4, 42),
    ],
)
def test_every_suite_in_small_with_all_of_its_methods(in_small, suite, models, checks, cases, of):
    known = {network.name: ",".join(network.datasets) for network in load(suite).networks}
    lines = [f"tiny({name!r}, {known[name]!r})" for name in models]
    in_small.makeconftest("\n".join([TINY, *lines]))
    result = run(
        in_small,
        f"--attr-suite={suite}",
        "--attr-images=4",
        f"--attr-checks={checks}",
        "--attr-accept-accuracy",
        "--attr-report",
    )
    assert result.ret == 0, result.stdout.str()
    document = report(in_small)
    ran = {case["id"] for case in document["cases"]}
    assert len(ran) == cases
    assert ran <= {*load(suite).cases}
    assert document["settings"]["methods"] == sorted(load(suite).methods)
    assert document["settings"]["of_cases"] == of
    assert document["settings"]["partial"] is (cases < of)
    assert {check["check"] for check in document["checks"]} == {*checks.split(",")}
    scored = [s["status"] for case in document["cases"] for s in case["scores"].values()]
    assert "error" not in scored
    assert scored.count("ok") >= len(scored) / 2
    header = f"attrcheck: suite {suite}, {of} cases: *"
    result.stdout.fnmatch_lines(
        [header, f"{cases} cases x * methods, suite {suite}, profile full*"]
    )
