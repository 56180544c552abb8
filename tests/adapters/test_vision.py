"""torchvision is imported where it is healthy, cured where it is not, asked for where missing.

And so is timm, which imports it.
"""

import multiprocessing
import os
import subprocess
import sys
import textwrap

import pytest

BROKEN = """
    import torchvision.before
    import torch
    @torch.library.register_fake("torchvision::nms")
    def nms(dets, scores, iou_threshold): return dets
    @torch.library.register_fake("torchvision::qnms")
    def qnms(dets, scores, iou_threshold): return dets
    healthy = False
"""
HEALTHY = "import torchvision.before\nhealthy = True"
OTHERWISE_BROKEN = "raise RuntimeError('operator torchvision::roi_pool does not exist')"
NEEDY = "import a_module_that_is_not_there"


def execute(script, folder):
    """Run a script; what it prints goes to files."""
    for stream, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY), stream)
    exec(script, {"sys": sys})


def run(tmp_path, package, code):
    """Run code where `package` is the source of torchvision, which counts how often it is read.

    In a copy of a process that has imported torch, and of what is tried here nothing.
    """
    if package is not None:
        folder = tmp_path / "torchvision"
        folder.mkdir()
        (folder / "__init__.py").write_text(textwrap.dedent(package))
        (folder / "before.py").write_text("import sys\nsys.reads = getattr(sys, 'reads', 0) + 1\n")
    hide = "" if package is not None else "sys.modules['torchvision'] = None\n"
    script = f"sys.path.insert(0, {str(tmp_path)!r})\n{hide}{textwrap.dedent(code)}"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    process = context.Process(target=execute, args=(script, tmp_path))
    process.start()
    process.join()
    printed = [(tmp_path / name).read_text() for name in ("stdout", "stderr")]
    return subprocess.CompletedProcess("", process.exitcode, *printed)


REPORT = """
    from attrcheck.adapters.vision import torchvision
    import torch
    print(torchvision.healthy, sys.reads, hasattr(torch.ops.torchvision, "nms"))
"""


def test_a_healthy_torchvision_is_left_alone(tmp_path):
    done = run(tmp_path, HEALTHY, REPORT)
    assert done.stdout.split() == ["True", "1", "False"], done.stderr


def test_missing_operators_are_declared_and_the_import_starts_afresh(tmp_path):
    done = run(tmp_path, BROKEN, REPORT)
    assert done.stdout.split() == ["False", "2", "True"], done.stderr


def test_an_earlier_failure_does_no_harm(tmp_path):
    code = "try:\n    import torchvision\nexcept RuntimeError:\n    pass\n"
    done = run(tmp_path, BROKEN, code + textwrap.dedent(REPORT))
    assert done.stdout.split() == ["False", "2", "True"], done.stderr


@pytest.mark.parametrize(
    ("package", "message"),
    [
        (OTHERWISE_BROKEN, "RuntimeError: operator torchvision::roi_pool does not exist"),
        (NEEDY, "ModuleNotFoundError: No module named 'a_module_that_is_not_there'"),
        (None, "VisionError: torchvision is not installed; run `pip install torchvision`"),
    ],
)
def test_other_troubles_are_told_as_they_are(tmp_path, package, message):
    done = run(tmp_path, package, "import attrcheck.adapters.vision")
    assert done.returncode == 1
    assert message in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("package", [HEALTHY, BROKEN])
def test_timm_finds_a_torchvision_that_can_be_imported(tmp_path, package):
    (tmp_path / "timm.py").write_text("import torchvision\nhealthy = torchvision.healthy\n")
    code = "from attrcheck.adapters.vision import timm\nprint(timm.healthy, sys.reads)"
    done = run(tmp_path, package, code)
    assert done.stdout.split() == [str(package is HEALTHY), "1" if package is HEALTHY else "2"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("timm", "VisionError: timm is not installed; run `pip install attrcheck[vision]`"),
        (
            "transformers",
            "VisionError: transformers is not installed; run `pip install attrcheck[hf]`",
        ),
        ("other", "ImportError: cannot import name 'other' from 'attrcheck.adapters.vision'"),
    ],
)
def test_a_library_is_missed_only_where_it_is_asked_for(tmp_path, name, message):
    code = (
        "sys.modules.update(timm=None, transformers=None)\n"
        "import attrcheck.adapters.vision\nprint('fine', flush=True)\n"
    )
    done = run(tmp_path, HEALTHY, code + f"from attrcheck.adapters.vision import {name}")
    assert done.stdout.split() == ["fine"]
    assert message in done.stderr.splitlines()[-1]


def test_the_real_one_builds_models():
    from attrcheck.adapters.vision import torchvision

    assert torchvision.models.resnet18().fc.out_features == 1000
