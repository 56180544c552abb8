"""Where workers compute: devices that are there, dealt out evenly, with the digits they have."""

import pytest
import torch

from attrcheck.plugin import devices, scaling
from tests.plugin.test_options import Config
from tests.plugin.test_plugin import project, report, run

__all__ = ["project"]
pytest_plugins = ["pytester"]


@pytest.fixture
def gpus(monkeypatch):
    """Pretend that there are so many."""
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    return lambda count: monkeypatch.setattr(torch.cuda, "device_count", lambda: count)


def check(**given):
    scaling.check_device(Config({f"attr_{name}": value for name, value in given.items()}))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"device": "gpu"}, "--attr-device takes .* not gpu"),
        ({"device": "cuda:x"}, "--attr-device takes .* not cuda:x"),
        ({"device": "cuda:2"}, "--attr-device cuda:2: there are 2 CUDA devices here"),
        ({"device": "mps"}, "--attr-device mps: there is no MPS device here"),
        ({"precision": "half"}, "--attr-precision takes float32, tf32, bfloat16, not half"),
        (
            {"precision": "tf32", "device": "cpu"},
            "--attr-precision tf32: that is a format of CUDA devices, and this run is on cpu",
        ),
    ],
)
def test_what_cannot_be_is_a_usage_error(given, words, gpus):
    gpus(2)
    with pytest.raises(pytest.UsageError, match=words):
        check(**given)


def test_what_is_there_may_be_asked_for(gpus):
    gpus(2)
    check()
    check(device="cuda:1")
    check(device="cuda", precision="tf32")
    check(precision="tf32")
    check(device="cpu", precision="bfloat16")
    gpus(0)
    check()
    for wanted in ({"device": "cuda"}, {"device": "cuda:0"}, {"precision": "tf32"}):
        with pytest.raises(pytest.UsageError):
            check(**wanted)


def test_auto_deals_the_gpus_out_evenly_and_knows_who_shares_one(gpus):
    gpus(2)
    dealt = [devices.deal("auto", index, 5) for index in range(5)]
    assert dealt == [("cuda:0", 3), ("cuda:1", 2), ("cuda:0", 3), ("cuda:1", 2), ("cuda:0", 3)]
    assert devices.deal("auto", 7, 5) == ("cuda:1", 2)  # started in place of one that crashed
    assert devices.deal("auto", 1, 1) == ("cuda:1", 1)
    assert devices.deal("cuda:1", 0, 5) == ("cuda:1", 5)
    gpus(0)
    assert devices.deal("auto", 3, 4) == ("cpu", 4)


def test_it_is_said_if_workers_share_a_gpu(gpus):
    gpus(2)
    words = "share its memory"
    assert devices.remark("auto", 5) == f"5 workers on 2 GPUs, 2 or 3 on each, {words}"
    assert devices.remark("auto", 4) == f"4 workers on 2 GPUs, 2 on each, {words}"
    assert devices.remark("cuda:1", 3) == f"3 workers on one GPU {words}"
    for alone in (("auto", 2), ("auto", 1), ("cpu", 8), ("cuda", 1)):
        assert devices.remark(*alone) == ""
    gpus(0)
    assert devices.remark("auto", 8) == ""


def test_a_run_in_bfloat16_says_so_and_computes_its_own_rows(project):
    options = ("--attr-report", "--attr-models=linear", "--attr-protocols=deletion")
    run(project, *options)
    exact = report(project)
    run(project, *options, "--attr-precision=bfloat16")
    coarse = report(project)
    assert "precision" not in exact["settings"]
    assert coarse["settings"]["precision"] == "bfloat16"
    scores = [case["scores"]["exact"]["score"] for case in (*exact["cases"], *coarse["cases"])]
    assert scores[0] != scores[1]
    assert scores[0] == pytest.approx(scores[1], abs=0.01)
