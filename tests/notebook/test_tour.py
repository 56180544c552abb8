"""The tour of the docs runs as it stands there."""

import re

import pytest

from tests.test_house import ROOT


def test_the_tour_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs/howto/notebooks.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 6
    names: dict = {}
    for block in blocks:
        exec(block, names)
    assert (tmp_path / "maps.pdf").read_bytes().startswith(b"%PDF")
    assert names["board"].entries[-1].method == "random"
    assert names["by_lrp"].score == pytest.approx(names["by_lrp"].per_image.mean())
