"""The plugin in projects that do not use it: light, silent, and in nobody's way."""

import subprocess
import sys

import pytest

from tests.plugin.test_plugin import PLAIN

pytest_plugins = ["pytester"]


HEAVY = (
    "torch",
    "numpy",
    "scipy",
    "hypothesis",
    "torchvision",
    "tabulate",
    "captum",
    "safetensors",
    "ray",
)
ROOMS = (
    *("contracts", "checks", "datasets", "executors", "methods", "models", "protocols", "report"),
    "store",
)


def test_idle_it_imports_nothing_heavy_and_prints_nothing(pytester):
    pytester.makepyfile(
        f"""
        import sys

        def test_nothing_heavy():
            assert not set({HEAVY}) & sys.modules.keys()
            assert not [room for room in {ROOMS} if f"attrcheck.{{room}}" in sys.modules]
        """
    )
    result = pytester.runpytest_subprocess(*PLAIN, "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    result.stdout.no_re_match_line("(?i).*attr-|.*leaderboard")


def test_help_lists_every_option(pytester):
    text = pytester.runpytest_inprocess("--help").stdout.str()
    for name in ("datasets", "methods", "profile", "store", "fresh", "report-dir", "gate"):
        assert f"--attr-{name}" in text


def test_the_plugin_is_light():
    """What attrcheck adds to the start of any pytest run, imports and all.

    It was 27 ms on a busy machine when the plugin imported every registry, and is 16 ms there.
    """
    code = (
        "import time, pytest, tempfile, argparse\n"
        "start = time.process_time()\nimport attrcheck.plugin\nprint(time.process_time() - start)"
    )
    seconds = min(
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    )
    assert seconds < 0.025


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_a_project_whose_ids_look_like_ours_is_left_alone(pytester, workers):
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("how", ["seed-random", "contract-gradcam", "digits-resnet-morf"])
        def test_how(how):
            assert how != "digits-resnet-morf"
            if how == "seed-random":
                pytest.skip("not today")
        """
    )
    result = pytester.runpytest_subprocess(*PLAIN, workers)
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    result.stdout.no_fnmatch_line("*attrcheck::*")
