"""benchmarks/gpu.py runs where there is no GPU, or says what to do."""

import pytest
import torch

from benchmarks import gpu

SMALL = ("--network=digits-resnet", "--images=2", "--methods=gradient", "--protocols=morf")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_without_a_gpu_it_says_so(capsys):
    assert gpu.main([]) == 1
    assert capsys.readouterr().out.startswith("there is no CUDA device here; --device cpu")


@pytest.mark.parametrize("device", ["pretended", "cpu"])
def test_it_counts_passes_and_waits(device, capsys, monkeypatch):
    monkeypatch.setattr(gpu, "TURNS", 1)
    assert gpu.main([*SMALL, f"--device={device}"]) == 0
    lines = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()[3:]]
    gradient, morf = ([cell.strip() for cell in cells] for cells in lines)
    counted = device == "pretended"
    # One wait for the maps, one to see that nothing was changed.
    assert gradient[:4] == ["gradient", "1", "1", "2" if counted else "-"]
    # Nine steps and the empty image; one wait for all steps, one for the image.
    assert morf[:4] == ["morf", "10", "0", "2" if counted else "-"]
    assert [cell != "-" for cell in morf[4:]] == [counted, *[not counted] * 3]
