"""Folders of pictures: what is found, in which order, and one sentence for whatever is wrong."""

import hashlib
import os
import pickle
from collections import Counter

import numpy as np
import pytest
from PIL import Image

import attrcheck
from attrcheck.contracts import Preprocessing
from attrcheck.datasets import DatasetError, hashes
from attrcheck.datasets.folders import folder, resolve
from tests.datasets.drawing import class_folders, draw, noise


@pytest.fixture
def root(tmp_path):
    return class_folders(tmp_path / "pets")


def test_a_folder_per_class(root):
    pictures = folder(root)
    assert pictures.name == "pets"
    assert pictures.class_names == ("cat", "dog")
    assert pictures.classes == 2
    assert len(pictures) == 9
    assert Counter(pictures.labels) == {0: 6, 1: 3}
    assert sorted(pictures.ids) == [f"cat/0{n}.png" for n in range(6)] + [
        f"dog/0{n}.png" for n in range(3)
    ]
    for index, (name, label) in enumerate(zip(pictures.ids, pictures.labels, strict=True)):
        assert name.startswith(pictures.class_names[label])
        wanted = np.asarray(Image.open(root / name))
        assert np.array_equal(np.asarray(pictures.read(index)), wanted)
    assert pictures.mask is pictures.training is pictures.preprocessing is None


def test_pictures_lie_deep_hidden_and_other_files_are_left_out(root):
    draw(root / "cat/deep/er/x.JPEG")
    draw(root / "cat/.hidden.png")
    draw(root / "cat/.cache/x.png")
    draw(root / ".git/x.png")
    (root / "cat/Thumbs.db").touch()
    (root / "README.txt").write_text("pets")
    draw(root / "stray.png")
    assert set(folder(root).ids) - {f"{c}/0{n}.png" for c in ("cat", "dog") for n in range(6)} == {
        "cat/deep/er/x.JPEG"
    }


def test_links_are_followed_but_never_round(root):
    draw(root.parent / "elsewhere/far.png")
    (root / "cat/link").symlink_to(root.parent / "elsewhere")
    (root / "cat/loop").symlink_to(root / "cat")
    (root / "cat/self").symlink_to("self")
    (root / "cow").symlink_to(root.parent / "elsewhere")
    pictures = folder(root)
    assert pictures.class_names == ("cat", "cow", "dog")
    assert len(pictures) == 11
    assert {"cat/link/far.png", "cow/far.png"} < set(pictures.ids)


def test_every_prefix_is_a_fair_sample_and_the_order_is_told_by_names_alone(tmp_path):
    root = class_folders(tmp_path / "a", {"few": 10, "many": 40, "some": 20})
    pictures = folder(root)
    for end in range(7, 71, 7):
        counts = Counter(pictures.labels[:end])
        for label, share in ((0, 1 / 7), (1, 4 / 7), (2, 2 / 7)):
            assert abs(counts[label] - share * end) <= 1.5, end
    again = folder(root.rename(tmp_path / "b"), name="other")
    assert again.ids == pictures.ids
    assert list(pictures.ids) != sorted(pictures.ids)
    # A file more moves none of the others past one of its class.
    draw(root.parent / "b/many/extra.png")
    more = [name for name in folder(tmp_path / "b").ids if name != "many/extra.png"]
    assert [name for name in more if "many" in name] == [
        name for name in pictures.ids if "many" in name
    ]


def test_the_order_is_this_one(tmp_path):
    pictures = folder(class_folders(tmp_path, {"few": 3, "many": 7}))

    def draw_of(name, purpose):
        text = "\0".join(("0", name, purpose)).encode()
        return (int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 1) / 2**63

    places = {}
    for label in ("few", "many"):
        members = [name for name in pictures.ids if name.startswith(label)]
        members.sort(key=lambda name: draw_of(name, "order"))
        for rank, name in enumerate(members):
            places[name] = (rank + draw_of(name, "place")) / len(members)
    assert list(pictures.ids) == sorted(places, key=places.get)


@pytest.mark.parametrize(
    "table",
    [
        "a.png,dog\nsub/b.png,cat\nc.png,dog\n",
        "file,label\na.png,dog\nsub/b.png,cat\nc.png,dog\n",
        "\ufeffFilename,Class\r\na.png,dog\r\nsub/b.png,cat\r\n\r\nc.png,dog\r\n",
        "label,more,path\ndog,1,a.png\ncat,2,sub/b.png\ndog,3,c.png\n",
        '"a.png", dog\n"sub/b.png", cat\nc.png, dog',
    ],
)
def test_a_flat_folder_with_labels_in_a_table(tmp_path, table):
    for seed, name in enumerate(("a.png", "sub/b.png", "c.png", "not_listed.png")):
        draw(tmp_path / name, seed)
    (tmp_path / "labels.csv").write_text(table, encoding="utf-8")
    pictures = folder(tmp_path)
    assert pictures.class_names == ("cat", "dog")
    labels = dict(zip(pictures.ids, pictures.labels, strict=True))
    assert labels == {"a.png": 1, "sub/b.png": 0, "c.png": 1}


def test_labels_may_be_numbers_with_names_in_a_file_of_classes(tmp_path):
    for name in ("a.png", "b.png"):
        draw(tmp_path / name)
    (tmp_path / "labels.csv").write_text("a.png,2\nb.png,0\n")
    pictures = folder(tmp_path)
    assert pictures.class_names == ("0", "1", "2")
    assert dict(zip(pictures.ids, pictures.labels, strict=True)) == {"a.png": 2, "b.png": 0}
    (tmp_path / "classes.txt").write_text("zebra\n\nape\nbear\n")
    pictures = folder(tmp_path)
    assert pictures.class_names == ("zebra", "ape", "bear")
    assert dict(zip(pictures.ids, pictures.labels, strict=True)) == {"a.png": 2, "b.png": 0}
    (tmp_path / "elsewhere.csv").write_text("a.png,ape\n")
    assert folder(tmp_path, labels="elsewhere.csv").labels == (1,)


def test_a_file_of_classes_gives_the_order_of_class_folders(root):
    (root / "classes.txt").write_text("dog\nfish\ncat\n")
    pictures = folder(root)
    assert pictures.class_names == ("dog", "fish", "cat")
    assert Counter(pictures.labels) == {2: 6, 0: 3}
    assert Counter(folder(root, classes=("cat", "dog")).labels) == {0: 6, 1: 3}
    (root / "order.txt").write_text("cat\n")
    with pytest.raises(DatasetError, match=r"pets/dog is not one of the 1 classes"):
        folder(root, classes="order.txt")


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("a.png,3\nb.png,0", r"labels\.csv, line 1: the label '3' of a\.png is not one of the 2"),
        ("a.png,0\nb.png,-1", r"line 2: the label '-1' of b\.png is not one of the 2 classes"),
        ("a.png,cat\nb.png,cow", r"line 2: the label 'cow' of b\.png is not one"),
        ("a.png,cat\ngone.png,cat", r"line 2: there is no picture .*gone\.png"),
        ("a.png,cat\na.png,dog", r"line 2: a\.png is listed more than once"),
        ("a.png\nb.png", r"line 1: write `file,label`, not 'a\.png'"),
        ("a.png,cat\nb.png,", r"line 2: write `file,label`"),
        ("file,label\n", r"labels\.csv lists no picture"),
        ("", r"labels\.csv lists no picture"),
    ],
)
def test_a_wrong_line_of_a_table_is_named(tmp_path, table, words):
    for name in ("a.png", "b.png"):
        draw(tmp_path / name)
    (tmp_path / "classes.txt").write_text("cat\ndog\n")
    (tmp_path / "labels.csv").write_text(table)
    with pytest.raises(DatasetError, match=words):
        folder(tmp_path)


def test_numbers_without_classes_must_be_labels_not_ids(tmp_path):
    for name in ("a.png", "b.png"):
        draw(tmp_path / name)
    (tmp_path / "labels.csv").write_text("a.png,-1\nb.png,1\n")
    with pytest.raises(DatasetError, match="line 1: the label '-1'"):
        folder(tmp_path)
    (tmp_path / "labels.csv").write_text("a.png,123456789\nb.png,1\n")
    with pytest.raises(DatasetError, match="line 1: the label '123456789'"):
        folder(tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [("cat\ncat\ndog\n", "has the class 'cat' more than once"), ("\n", "classes.txt is empty")],
)
def test_a_wrong_file_of_classes_is_named(root, text, words):
    (root / "classes.txt").write_text(text)
    with pytest.raises(DatasetError, match=words):
        folder(root)


def test_files_that_are_not_text_are_named(root):
    (root / "classes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DatasetError, match=r"classes\.txt cannot be read"):
        folder(root)


def test_missing_empty_and_unsorted_folders_get_one_sentence(tmp_path):
    with pytest.raises(DatasetError, match=r"the folder of pictures .*gone does not exist$"):
        folder(tmp_path / "gone")
    (tmp_path / "file").touch()
    with pytest.raises(DatasetError, match=r"file is not a folder$"):
        folder(tmp_path / "file")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"empty has no pictures \(.jpg, .*and no class folders"):
        folder(tmp_path / "empty")
    draw(tmp_path / "flat/a.png")
    with pytest.raises(DatasetError, match=r"flat has pictures, but neither class .* labels\.csv"):
        folder(tmp_path / "flat")


def test_an_empty_class_folder_is_named(root):
    (root / "fish").mkdir()
    (root / "fish/readme.txt").touch()
    with pytest.raises(DatasetError, match=r"class folder .*pets/fish has no pictures"):
        folder(root)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_named(root):
    (root / "dog").chmod(0)
    try:
        with pytest.raises(DatasetError, match="dog cannot be read"):
            folder(root)
    finally:
        (root / "dog").chmod(0o755)


def test_bad_pictures_are_named_when_they_are_read_and_others_are_not_lost(root):
    (root / "cat/00.png").write_bytes(b"")
    (root / "dog/01.png").write_bytes(b"<html>")
    pictures = folder(root)
    bad = {pictures.ids.index("cat/00.png"), pictures.ids.index("dog/01.png")}
    for index in range(len(pictures)):
        if index in bad:
            with pytest.raises(DatasetError, match=pictures.ids[index]):
                pictures.read(index)
        else:
            assert pictures.read(index).size == (8, 6)


class TestMasks:
    @pytest.fixture
    def masks(self, root):
        for path in sorted(root.rglob("*.png")):
            mask = Image.new("L", (8, 6))
            mask.putpixel((len(path.parent.name), 2), 1)
            target = root.parent / "pets_masks" / path.relative_to(root)
            target.parent.mkdir(parents=True, exist_ok=True)
            mask.save(target.with_suffix(".bmp"))
        return root.parent / "pets_masks"

    def test_they_lie_beside_the_folder(self, root, masks):
        pictures = folder(root)
        mask = np.asarray(pictures.mask(0))
        assert np.argwhere(mask).tolist() == [[2, 3]]
        assert resolve(str(root)).offers == ("masks",)

    def test_or_where_they_are_said_to_be(self, root, masks):
        elsewhere = masks.rename(masks.parent / "truth")
        assert folder(root).mask is None
        assert folder(root, masks="../truth").mask(0).size == (8, 6)
        assert folder(root, masks=elsewhere).mask(0).size == (8, 6)
        assert resolve(str(root), masks="../truth").offers == ("masks",)
        with pytest.raises(DatasetError, match=r"folder of masks .*nowhere does not exist"):
            folder(root, masks="nowhere")

    def test_a_missing_one_and_one_of_another_size_are_named(self, root, masks):
        noise(size=(5, 5)).save(masks / "cat/00.bmp")
        pictures = folder(root)
        with pytest.raises(DatasetError, match=r"mask .*cat/00\.bmp is 5 x 5, .* is 8 x 6"):
            pictures.mask(pictures.ids.index("cat/00.png"))
        (masks / "dog/02.bmp").unlink()
        with pytest.raises(DatasetError, match=r"dog/02\.png has no mask in .*pets_masks"):
            folder(root)

    def test_they_count_in_the_fingerprint(self, root, masks):
        before = folder(root).fingerprint([0, 1])
        Image.new("L", (8, 6), 7).save(masks / folder(root).ids[1].replace("png", "bmp"))
        assert folder(root).fingerprint([0, 1]) != before
        assert folder(root).fingerprint([0]) != before


def test_a_train_folder_beside_is_what_models_learn_from(tmp_path):
    class_folders(tmp_path / "data/val", {"cat": 2, "dog": 2})
    class_folders(tmp_path / "data/train", {"cat": 5, "dog": 4})
    for path, name in (("data/val", "val"), ("data", "data")):
        pictures = folder(tmp_path / path)
        assert pictures.name == name
        assert len(pictures) == 4
        assert Counter(pictures.training().labels) == {0: 5, 1: 4}
        assert resolve(str(tmp_path / path)).offers == ("training",)
    assert folder(tmp_path / "data/train").training is None
    class_folders(tmp_path / "data/train", {"fish": 1})
    with pytest.raises(DatasetError, match="train/fish is not one of the 2 classes"):
        folder(tmp_path / "data").training()


def test_parts_are_not_taken_for_classes(tmp_path):
    class_folders(tmp_path / "data/val")
    class_folders(tmp_path / "data/test")
    with pytest.raises(DatasetError, match=r"data has the parts test, val: say .*data/val or "):
        folder(tmp_path / "data")
    (tmp_path / "only").mkdir()
    class_folders(tmp_path / "only/train")
    with pytest.raises(DatasetError, match="only has the parts train: there is no val beside it"):
        folder(tmp_path / "only")


def test_a_fingerprint_tells_the_bytes_asked_for_and_no_others(root, monkeypatch):
    monkeypatch.setattr(hashes, "RACY", -1)
    pictures = folder(root)
    first, both = pictures.fingerprint([0]), pictures.fingerprint([0, 1])
    assert first != both
    assert pictures.fingerprint(range(1)) == first
    assert pictures.fingerprint([1, 0]) != both
    draw(root / pictures.ids[1], seed=99)
    assert folder(root).fingerprint([0]) == first
    assert folder(root).fingerprint([0, 1]) != both
    assert folder(root, upright=True).fingerprint([0]) != first


def test_a_folder_can_be_sent_to_another_process(root):
    pictures = folder(root)
    again = pickle.loads(pickle.dumps(pictures))
    assert again.ids == pictures.ids
    assert again.fingerprint([0]) == pictures.fingerprint([0])
    assert np.array_equal(np.asarray(again.read(0)), np.asarray(pictures.read(0)))


def test_a_folder_by_name_and_by_hand_are_the_same(root, registries):
    (name,) = attrcheck.dataset.select(f"folder:{root}")
    spec = attrcheck.dataset.get(name)
    assert spec.name == name == "pets"
    assert spec.load().ids == attrcheck.folder(root).ids
    (alias,) = attrcheck.dataset.select(f"mine=folder:{root}")
    assert attrcheck.dataset.get(alias).name == "mine"
    with pytest.raises(DatasetError, match="does not exist"):
        attrcheck.dataset.get("folder:/nowhere/at/all")


def test_options_of_a_table_reach_the_folder(root, registries):
    (root / "order.txt").write_text("dog\ncat\n")
    attrcheck.dataset.bind("mine", f"folder:{root}", {"classes": "order.txt", "upright": True})
    assert attrcheck.dataset.get("mine").load().class_names == ("dog", "cat")
    attrcheck.dataset.bind("listed", f"folder:{root}", {"classes": ["dog", "cat"]})
    assert attrcheck.dataset.get("listed").load().class_names == ("dog", "cat")


def test_preprocessing_for_models_without_one_says_how_many_channels(root):
    grey = Preprocessing((8, 8), (0.5,), (0.5,))
    assert folder(root, preprocessing=grey).channels == 1
    assert folder(root).channels == 3


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_names_that_are_not_utf8_are_taken_as_they_are(root):
    odd = os.fsdecode(b"caf\xe9.png")
    draw(root / "cat" / "plain.png").rename(root / "cat" / odd)
    pictures = folder(root)
    index = pictures.ids.index(f"cat/{odd}")
    assert pictures.read(index).size == (8, 6)
    assert pictures.fingerprint([index])
