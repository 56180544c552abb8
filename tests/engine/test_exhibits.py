import numpy as np
import pytest
import torch
from PIL import Image

from attrcheck.contracts import Case
from attrcheck.engine import exhibits, pictures
from attrcheck.engine.wire import dumps, loads


def test_right_images_and_some_wrong_ones_are_chosen_in_order():
    correct = np.ones(100, dtype=bool)
    correct[[3, 20, 50, 60, 70]] = False
    chosen = exhibits.choose(correct).tolist()
    assert chosen == [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 20, 50, 60]
    assert exhibits.choose(np.ones(100, dtype=bool)).tolist() == list(range(16))
    assert exhibits.choose(np.array([True, False])).tolist() == [0, 1]
    # Where few are right, wrong ones take their places.
    assert exhibits.choose(np.arange(100) < 2).tolist() == list(range(16))


def test_maps_are_divided_by_their_largest_absolute_value():
    maps = np.array([[[[0.5, -2.0], [1.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]], dtype=np.float32)
    whole, scales = exhibits.quantise(maps)
    assert whole.dtype == np.int8
    assert whole[0, 0].tolist() == [[32, -127], [64, 0]]
    assert whole[0, 1].tolist() == [[0, 0], [0, 0]]
    assert scales.tolist() == [[2.0, 0.0]]


def test_large_pictures_shrink_to_means_of_areas_and_small_ones_stay():
    small = torch.rand(2, 3, 8, 8)
    assert exhibits.shrink(small) is small
    large = torch.zeros(1, 1, 128, 256)
    large[..., :4, :4] = 1.0
    shrunk = exhibits.shrink(large)
    assert shrunk.shape == (1, 1, 32, 64)
    assert shrunk[0, 0, 0, 0] == 1.0
    assert shrunk.sum() == 1.0


@pytest.mark.parametrize(("channels", "shown"), [(1, 1), (2, 1), (3, 3), (5, 3)])
def test_images_become_bytes(channels, shown):
    images = torch.full((2, channels, 4, 5), 0.5)
    images[0, 0, 0, 0] = 2.0
    content = exhibits.as_bytes(images)
    assert content.shape == (2, 4, 5, shown)
    assert content[0, 0, 0, 0] == 255
    assert content[1, 0, 0, 0] == 128


def test_an_exhibit_has_the_maps_of_methods_that_work(tiny, tmp_path):
    def broken(model, images, targets):
        raise ValueError("no")

    tiny.add("broken", broken)
    evaluation = tiny.lab().evaluation(Case.of("tiny-linear-morf"))
    exhibit = exhibits.exhibit(evaluation, ["brightness", "broken", "slope"], tmp_path / "maps")
    assert not exhibit.full
    assert not (tmp_path / "maps").exists()
    assert exhibit.pair == "tiny-linear"
    assert exhibit.methods == ["brightness", "slope"]
    pair, chosen = tiny.pair, exhibit.positions
    assert exhibit.ids == [pair.dataset.ids[at] for at in chosen]
    assert exhibit.labels == [str(int(pair.dataset.labels[at])) for at in chosen]
    predicted = pair.predictor(pair.images[chosen]).argmax(1)
    assert exhibit.predictions == [str(int(at)) for at in predicted]
    maps = tiny.lab().maps(pair, "slope")[chosen]
    np.testing.assert_allclose(
        exhibit.maps[1] / 127 * exhibit.scales[1][:, None, None],
        maps,
        atol=np.abs(maps).max() / 127,
    )
    again = loads(type(exhibit), dumps(exhibit))
    np.testing.assert_array_equal(again.images, exhibit.images)


def test_large_images_have_files_in_full_size_too(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(exhibits, "SIDE", 4)
    evaluation = tiny.lab().evaluation(Case.of("tiny-linear-morf"))
    exhibit = exhibits.exhibit(evaluation, ["brightness", "slope"], tmp_path)
    assert exhibit.full
    assert exhibit.maps.shape[2:] == (4, 4)
    names = ["_images.png", "brightness.png", "slope.png"]
    assert sorted(path.name for path in (tmp_path / "tiny-linear").iterdir()) == names
    side = tiny.pair.images.shape[-1]
    with Image.open(tmp_path / pictures.path_of("tiny-linear", "slope")) as strip:
        assert strip.size == (side * len(exhibit.ids), side)
        assert strip.mode == "RGB"


def test_maps_are_white_at_zero_if_signed_and_dark_if_not():
    signed = pictures.coloured(np.array([[[-2.0, 0.0, 2.0]]], dtype=np.float32))
    assert signed[0, 0].tolist() == [[5, 48, 97], [247, 247, 247], [103, 0, 31]]
    plain = pictures.coloured(np.array([[[0.0, 3.0]], [[0.0, 0.0]]], dtype=np.float32))
    assert plain[0, 0].tolist() == [[0, 34, 78], [254, 232, 56]]
    assert plain[1, 0].tolist() == [[0, 34, 78]] * 2


def test_a_colon_is_in_no_file_name():
    assert pictures.path_of("d-timm:net", "captum:Lime") == "d-timm+net/captum+Lime.png"


def test_scores_of_images_and_errors_of_curves_come_with_an_outcome(tiny):
    result = tiny.run()
    outcome = result.outcomes["slope"]
    assert outcome.image_scores.mean() == pytest.approx(outcome.score)
    assert len(outcome.image_scores) == result.images
    assert len(outcome.curve_errors) == len(outcome.curve.y)
    # The first value is the accuracy of the model: right or wrong for each image.
    p, n = outcome.curve.y[0], result.images
    assert outcome.curve_errors[0] == pytest.approx((p * (1 - p) / (n - 1)) ** 0.5)
