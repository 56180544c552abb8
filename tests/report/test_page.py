"""report.html as text; `test_page_in_browser.py` looks at it as people do."""

import base64
import json
import re
import zlib
from dataclasses import replace

import numpy as np
import pytest

from attrcheck.engine.results import Exhibit
from attrcheck.report.details import Details
from attrcheck.report.html import board, data, page
from tests.report import pages
from tests.report.samples import empty


@pytest.fixture(scope="module")
def text():
    return page.render(*pages.page())


def unpacked(text, name):
    (content,) = re.findall(rf'<script type="[^"]+" id="{name}">([^<]+)</script>', text)
    return zlib.decompress(base64.b64decode(content))


def test_nothing_in_it_asks_for_anything_outside(text):
    assert re.findall(r"(?:src|href)\s*=\s*\"(?!#)[^\"]*\"", text) == []
    assert re.findall(r"\w+://[^\"]+", text) == ["http://www.w3.org/2000/svg"]  # a mere name
    assert "default-src &#39;none&#39;" in text


def test_its_only_script_is_the_one_that_the_policy_names(text):
    assert text.count("<script>") == 1
    assert f"<script>{page.script()}</script>" in text
    assert "</" not in page.script()


def test_the_data_are_those_of_the_report(text):
    document, details = pages.page()
    known = json.loads(unpacked(text, "data"))
    assert [method["name"] for method in known["methods"]] == [
        entry.method for entry in document.leaderboard
    ]
    case, entry = known["cases"][1], document.cases[1]
    assert case["id"] == "d0-net-p1"
    assert case["score"] == pytest.approx([s.score for s in entry.scores.values()], rel=1e-3)
    assert case["rank"] == [s.rank for s in entry.scores.values()]
    assert case["x"] == [k / 10 for k in range(11)]  # once for all methods
    assert case["errors"][0] == [0.02] * 11
    np.testing.assert_allclose(
        np.array(case["perImage"]), details.cases["d0-net-p1"].image_scores, rtol=0.006
    )
    away = known["cases"][0]
    assert away["notes"] == {"1": ["not applicable", "no gradient here"]}
    assert (away["score"][1], away["y"][1], away["perImage"][1]) == (None, None, None)


def test_pixels_are_images_and_then_maps(text):
    exhibit = pages.page()[1].exhibits[0]
    content = unpacked(text, "pixels-0")
    size = exhibit.images.size
    assert content[:size] == exhibit.images.tobytes()
    maps = np.frombuffer(content[size:], np.int8).reshape(exhibit.maps.shape)
    np.testing.assert_array_equal(maps, exhibit.maps)


def test_a_run_in_which_nothing_arrived_has_a_page():
    text = page.render(empty(missing=["a-x-up"]), Details())
    assert "incomplete" in text
    assert "no leaderboard: no method has a score" in text


def test_intervals_are_drawn_to_one_scale():
    scale = board.Axis(-1.0, 3.0)
    assert [scale.place(value) for value in (-1.0, 0.0, 1.0, 3.0)] == [3.0, 26.5, 50.0, 97.0]
    assert scale.zero == 26.5
    first, *_ = board.rows(pages.page()[0])
    assert first.own
    assert first.low <= first.at <= first.high <= 97


def test_the_page_of_a_default_run_is_small(monkeypatch):
    """216 cases, 28 methods and 100 images, without pictures: under 3 MB."""
    monkeypatch.setattr(pages, "IMAGES", 100)
    document, details = pages.page(216, 28)
    assert len(page.render(document, Details(details.started, details.cases))) < 3e6


def test_exhibits_may_lack_methods():
    methods = ["one", "two"]
    exhibit = Exhibit(
        pair="a-x",
        ids=["i"],
        positions=[3],
        labels=["0"],
        predictions=["1"],
        probabilities=[0.25],
        methods=["two"],
        images=np.zeros((1, 2, 3, 1), np.uint8),
        maps=np.zeros((1, 1, 2, 3), np.int8),
        scales=np.zeros((1, 1), np.float32),
    )
    known = data.of(empty(settings=pages.settings(methods)), Details(exhibits=[exhibit]))
    assert known["exhibits"][0]["methods"] == [1]
    assert known["exhibits"][0]["shape"] == [1, 2, 3, 1]
    assert known["exhibits"][0]["positions"] == [3]
    assert known["exhibits"][0]["files"] == []
    large = Details(exhibits=[replace(exhibit, full=True)])
    known = data.of(empty(settings=pages.settings(methods)), large)
    assert known["exhibits"][0]["files"] == [
        "report.maps/a-x/two.png",
        "report.maps/a-x/_images.png",
    ]
