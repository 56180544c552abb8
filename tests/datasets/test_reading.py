"""Bad and odd pictures: read as torchvision's users expect, or an error that names the file."""

import contextlib
import io

import numpy as np
import pytest
from PIL import Image

from attrcheck.datasets import DatasetError
from attrcheck.datasets.reading import decode, decode_mask, read_bytes, sizes
from tests.datasets.drawing import noise


def stored(picture, kind="PNG", **settings):
    file = io.BytesIO()
    picture.save(file, kind, **settings)
    return file.getvalue()


def loaded_by_torchvision(data):
    """What torchvision.datasets.folder.pil_loader does."""
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def palette():
    return noise().quantize(16)


ODD = {
    "rgb": stored(noise()),
    "jpeg": stored(noise(), "JPEG"),
    "grey": stored(noise(channels=1)),
    "one bit": stored(noise(channels=1).convert("1")),
    "palette": stored(palette()),
    "palette with transparent colours": stored(palette(), transparency=bytes(range(0, 160, 10))),
    "palette with one transparent colour": stored(palette(), transparency=3),
    "alpha": stored(noise().convert("RGBA")),
    "grey with alpha": stored(noise(channels=1).convert("LA")),
    "cmyk": stored(noise().convert("CMYK"), "JPEG"),
    "one pixel wide": stored(noise(size=(1, 9))),
    "wide": stored(noise(size=(20_000, 2)), "JPEG"),
    "gif": stored(palette(), "GIF"),
    "bmp": stored(noise(), "BMP"),
    "tiff": stored(noise(), "TIFF"),
    "webp": stored(noise(), "WEBP"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ODD)
def test_pixels_are_those_that_torchvision_gives(kind):
    picture = decode(ODD[kind], "x.png")
    assert picture.mode == "RGB"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *given, **more: None)
        wanted = loaded_by_torchvision(ODD[kind])
    assert np.array_equal(np.asarray(picture), wanted)


def test_an_alpha_channel_is_dropped_not_blended():
    clear = Image.new("RGBA", (2, 2), (200, 100, 50, 0))
    assert decode(stored(clear), "x").getpixel((0, 0)) == (200, 100, 50)


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_are_scaled_not_clipped(kind):
    deep = Image.fromarray(np.array([[0, 257, 32768, 65535]], dtype=np.uint16))
    assert np.asarray(decode(stored(deep, kind), "x"))[0, :, 1].tolist() == [0, 1, 128, 255]


def test_floats_from_0_to_1_are_scaled_and_others_refused():
    half = Image.fromarray(np.array([[0, 0.5, 1]], dtype=np.float32))
    assert np.asarray(decode(stored(half, "TIFF"), "x"))[0, :, 0].tolist() == [0, 128, 255]
    large = Image.fromarray(np.array([[0, 90.5]], dtype=np.float32))
    with pytest.raises(DatasetError, match=r"x\.tif has values from 0.0 to 90.5"):
        decode(stored(large, "TIFF"), "x.tif")
    with pytest.raises(DatasetError, match="to 70000"):
        decode(stored(Image.fromarray(np.array([[0, 70000]], dtype=np.int32)), "TIFF"), "x")


def rotated():
    exif = Image.Exif()
    exif[0x0112] = 6
    return stored(noise(size=(8, 6)), "JPEG", exif=exif.tobytes())


def test_the_rotation_of_a_camera_is_ignored_unless_it_is_asked_for():
    flat, upright = decode(rotated(), "x"), decode(rotated(), "x", upright=True)
    assert flat.size == (8, 6)
    assert np.array_equal(np.asarray(flat), loaded_by_torchvision(rotated()))
    assert upright.size == (6, 8)
    assert np.array_equal(np.asarray(upright), np.rot90(np.asarray(flat), -1))
    assert sizes(rotated(), "x") == ((8, 6), (8, 6))
    assert sizes(rotated(), "x", upright=True) == ((6, 8), (6, 8))


def test_a_jpeg_above_the_limit_of_pillow_is_decoded_smaller(monkeypatch):
    data = stored(noise(size=(64, 48)), "JPEG")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)  # of 3072; twice it is an error
    assert decode(data, "x").size == (32, 24)
    assert sizes(data, "x") == ((64, 48), (32, 24))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 2000)
    with pytest.warns(Image.DecompressionBombWarning):
        assert decode(data, "x").size == (64, 48)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_what_is_too_large_all_the_same_is_named(monkeypatch, kind):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 10)
    with pytest.raises(DatasetError, match=r"x\.png is too large .*MAX_IMAGE_PIXELS"):
        decode(stored(noise(size=(64, 48)), kind), "x.png")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "BMP"])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.95])
def test_truncated_pictures_are_named(kind, share):
    data = stored(noise(size=(64, 64)), kind)
    with pytest.raises(DatasetError, match=r"^x\.png is (damaged|not a picture)"):
        decode(data[: int(share * len(data))], "x.png")


@pytest.mark.parametrize(
    "data", [b"<html>not found</html>", b"\xff\xd8", b"%!PS-Adobe", b"\0" * 99]
)
def test_what_is_not_a_picture_is_named(data):
    with pytest.raises(DatasetError, match=r"^x\.jpg is (not a picture|damaged).*(replace|remove)"):
        decode(data, "x.jpg")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ODD)
def test_whatever_bytes_are_changed_it_is_a_picture_or_an_error_that_names_it(kind):
    rng = np.random.default_rng(0)
    for _ in range(60):
        data = bytearray(ODD[kind])
        for place in rng.integers(0, min(len(data), 300), 4):
            data[place] = rng.integers(256)
        for read in (decode, decode_mask, sizes):
            with contextlib.suppress(DatasetError):
                read(bytes(data), "x.png")
            if read is not decode_mask:
                with contextlib.suppress(DatasetError):
                    read(bytes(data), "x.png", upright=True)


def test_empty_missing_and_unreadable_files_are_named(tmp_path):
    empty = tmp_path / "empty.png"
    empty.touch()
    with pytest.raises(DatasetError, match=r"empty\.png is empty \(0 bytes\)"):
        read_bytes(empty)
    with pytest.raises(DatasetError, match=r"gone\.png cannot be read \(No such file"):
        read_bytes(tmp_path / "gone.png")
    with pytest.raises(DatasetError, match="cannot be read"):
        read_bytes(tmp_path)


MASK = np.array([[0, 1, 0], [0, 255, 2]], dtype=np.uint8)
MASKS = {
    "grey": stored(Image.fromarray(MASK)),
    "sixteen bits": stored(Image.fromarray(MASK.astype(np.uint16))),
    "one bit": stored(Image.fromarray(MASK > 0)),
    "colours": stored(Image.fromarray(np.stack([MASK * 0, MASK, MASK * 0], -1))),
}


@pytest.mark.parametrize("kind", MASKS)
def test_what_is_not_black_belongs_to_a_mask(kind):
    mask = decode_mask(MASKS[kind], "m.png")
    assert np.array_equal(np.asarray(mask), np.where(MASK, 255, 0))


def test_a_mask_of_palette_colours_is_told_by_colour():
    mask = Image.fromarray(np.array([[0, 1], [2, 0]], dtype=np.uint8), "P")
    mask.putpalette([0, 0, 0, 128, 0, 0, 0, 128, 0])
    assert np.asarray(decode_mask(stored(mask), "m")).tolist() == [[0, 255], [255, 0]]
