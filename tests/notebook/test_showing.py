"""Figures and small pictures for notebooks."""

import io
import re
from base64 import b64decode

import numpy as np
import pytest
import torch
from PIL import Image

import attrcheck
from attrcheck.notebook.inputs import InputError
from attrcheck.notebook.pictures import visible
from tests.notebook.test_notebook import GREY, MODEL


def drawn(axes):
    """The picture in a part of a figure."""
    return np.asarray(axes.images[0].get_array())


def test_images_are_shown_with_their_maps_beside_them():
    maps = np.zeros((3, 4, 4), dtype=np.float32)
    maps[:, 0, 0], maps[:, 3, 3] = 1.0, -1.0
    figure = attrcheck.show(GREY, {"signed": maps, "plain": np.abs(maps)}, labels=["x", "y", "z"])
    assert len(figure.axes) == 3 * 3
    assert [axes.get_title() for axes in figure.axes[:3]] == ["image", "signed", "plain"]
    assert figure.axes[3].get_ylabel() == "y"
    np.testing.assert_array_equal(drawn(figure.axes[0])[0, 0], 0)
    signed = drawn(figure.axes[1])
    assert signed[0, 0].tolist() == [0x67, 0x00, 0x1F]  # the highest is red,
    assert signed[3, 3].tolist() == [0x05, 0x30, 0x61]  # the lowest blue,
    assert signed[1, 1].tolist() == [0xF7, 0xF7, 0xF7]  # and zero is white
    assert drawn(figure.axes[2])[1, 1].tolist() == [0x00, 0x22, 0x4E]


def test_a_figure_shows_itself_in_a_notebook():
    figure = attrcheck.show(GREY, GREY[:, 0], most=2)
    assert len(figure.axes) == 2 * 2
    picture = Image.open(io.BytesIO(figure._repr_png_()))
    assert picture.format == "PNG"
    assert min(picture.size) > 100


def test_attributions_know_their_names():
    maps = [attrcheck.attribute(name, MODEL, GREY, [0, 1, 1]) for name in ("saliency", "random")]
    assert [axes.get_title() for axes in attrcheck.show(GREY, maps).axes[1:3]] == [
        "saliency",
        "random",
    ]
    assert attrcheck.show(GREY, maps[0]).axes[1].get_title() == "saliency"
    with pytest.raises(InputError, match=r"maps are \[2, 4, 4\]"):
        attrcheck.show(GREY, maps[0].maps[:2])


def test_colours_are_those_before_the_normalisation():
    figure = attrcheck.show((GREY - 0.5) / 0.25, GREY[:, 0], mean=0.5, std=0.25, most=1)
    np.testing.assert_array_equal(drawn(figure.axes[0])[0, 0], 0)
    half = attrcheck.show((torch.full_like(GREY, 0.5) - 0.5) / 0.25, GREY[:, 0], mean=0.5, std=0.25)
    assert drawn(half.axes[0])[0, 0] == 128


def test_images_of_unknown_normalisation_go_from_their_least_to_their_most():
    shown = visible(GREY * 5)
    assert shown.amin((1, 2, 3)).tolist() == [0, 0, 0]
    assert shown.amax((1, 2, 3)).tolist() == [1, 1, 1]
    torch.testing.assert_close(visible(GREY.abs()), GREY.abs())


def test_an_attribution_has_small_pictures():
    html = attrcheck.attribute("saliency", MODEL, GREY, [0, 1, 1])._repr_html_()
    pictures = [
        Image.open(io.BytesIO(b64decode(data))) for data in re.findall(r"base64,([^\"]+)", html)
    ]
    assert [picture.size for picture in pictures] == [(12, 4), (12, 4)]
    assert "maps of saliency" in html


def test_a_score_draws_its_curve():
    score = attrcheck.score("morf", MODEL, GREY, [0, 1, 1], torch.rand(3, 4, 4))
    html = score._repr_html_()
    assert html.count(",") >= len(score.curve.x)
    assert "lower is better" in html
    assert "<polyline" in html
