"""Datasets of Hugging Face by name, from small tables on disk."""

import io
import sys

import numpy as np
import pytest

import attrcheck
from attrcheck.adapters import hf_datasets
from attrcheck.adapters.hf_datasets import resolve
from attrcheck.datasets import DatasetError
from tests.datasets.drawing import draw, noise

datasets = pytest.importorskip("datasets")


@pytest.fixture(autouse=True)
def forget(monkeypatch, tmp_path):
    hf_datasets._loaded.cache_clear()
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hf-cache")


def picture(seed):
    file = io.BytesIO()
    noise(seed).save(file, "PNG")
    return {"bytes": file.getvalue(), "path": None}


def table(labels, seed=0, label="label", image="image", names=("cat", "dog")):
    features = datasets.Features(
        {
            image: datasets.Image(),
            label: datasets.ClassLabel(names=list(names)),
            "note": datasets.Value("string"),
        }
    )
    rows = {
        image: [picture(seed + index) for index in range(len(labels))],
        label: labels,
        "note": ["x"] * len(labels),
    }
    return datasets.Dataset.from_dict(rows, features=features)


@pytest.fixture
def saved(tmp_path):
    parts = {"train": table([0, 1, 0, 1], 50), "test": table([0, 1, 1])}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "my-pets"))
    return tmp_path / "my-pets"


def test_a_saved_dataset(saved):
    spec = resolve(str(saved))
    assert (spec.name, spec.offers) == ("hf:my_pets", ("training",))
    pictures = spec.load()
    assert pictures.class_names == ("cat", "dog")
    assert sorted(zip(pictures.ids, pictures.labels, strict=True)) == [("0", 0), ("1", 1), ("2", 1)]
    for place, name in enumerate(pictures.ids):
        assert np.array_equal(np.asarray(pictures.read(place)), np.asarray(noise(int(name))))
    assert len(pictures.training()) == 4
    assert pictures.fingerprint([0]) == spec.load().fingerprint([0])
    assert pictures.fingerprint([0]) != pictures.fingerprint([1])


def test_a_single_table(tmp_path):
    table([0, 1]).save_to_disk(str(tmp_path / "one"))
    spec = resolve(str(tmp_path / "one"))
    assert spec.offers == ()
    assert len(spec.load()) == 2


def test_a_folder_of_parquet_files(tmp_path):
    (tmp_path / "data").mkdir()
    table([0, 1, 1]).to_parquet(str(tmp_path / "data/validation-00000-of-00001.parquet"))
    table([0, 1]).to_parquet(str(tmp_path / "data/train-00000-of-00001.parquet"))
    pictures = resolve(str(tmp_path)).load()
    assert pictures.class_names == ("cat", "dog")
    assert len(pictures) == 3
    assert len(pictures.training()) == 2


def test_a_test_split_with_hidden_labels_is_not_taken(tmp_path):
    parts = {"validation": table([0, 1]), "test": table([-1, -1, -1])}
    datasets.DatasetDict(parts).save_to_disk(str(tmp_path / "hidden"))
    assert len(resolve(str(tmp_path / "hidden")).load()) == 2
    with pytest.raises(DatasetError, match=r"row 0 of hf:.*: the label -1 is not one of 2 classes"):
        resolve(str(tmp_path / "hidden"), split="test").load()


def test_columns_are_found_by_type_and_can_be_named(tmp_path):
    both = table([0, 1], label="fine_label", image="img").add_column(
        "coarse_label", [0, 0], feature=datasets.ClassLabel(names=["animal"])
    )
    both.save_to_disk(str(tmp_path / "both"))
    assert resolve(str(tmp_path / "both")).load().class_names == ("cat", "dog")
    coarse = resolve(str(tmp_path / "both"), label="coarse_label").load()
    assert coarse.class_names == ("animal",)
    both.rename_column("fine_label", "other").save_to_disk(str(tmp_path / "unclear"))
    with pytest.raises(DatasetError, match=r"several columns of type ClassLabel among img, other"):
        resolve(str(tmp_path / "unclear")).load()
    both.remove_columns("img").save_to_disk(str(tmp_path / "blind"))
    with pytest.raises(DatasetError, match=r"has no Image column among .*image = "):
        resolve(str(tmp_path / "blind")).load()


def test_only_a_training_split_must_be_asked_for(tmp_path):
    datasets.DatasetDict({"train": table([0, 1])}).save_to_disk(str(tmp_path / "only"))
    with pytest.raises(DatasetError, match="no held-out split with labels; it has: train"):
        resolve(str(tmp_path / "only")).load()
    spec = resolve(str(tmp_path / "only"), split="train")
    assert spec.offers == ()
    assert spec.load().training is None
    with pytest.raises(DatasetError, match="no split 'dev'; it has: train"):
        resolve(str(tmp_path / "only"), split="dev").load()


def test_pictures_in_files_and_broken_ones(tmp_path):
    files = [str(draw(tmp_path / f"{n}.png", n)) for n in range(2)]
    (tmp_path / "1.png").write_bytes(b"<html>")
    rows = {"image": files, "label": [0, 1]}
    kinds = {"image": datasets.Image(), "label": datasets.ClassLabel(names=["a", "b"])}
    datasets.Dataset.from_dict(rows, features=datasets.Features(kinds)).save_to_disk(
        str(tmp_path / "files")
    )
    pictures = resolve(str(tmp_path / "files")).load()
    assert pictures.read(pictures.ids.index("0")).size == (8, 6)
    with pytest.raises(DatasetError, match=r"row 1 of hf:.*files is (damaged|not a picture)"):
        pictures.read(pictures.ids.index("1"))


def test_what_is_neither_there_nor_in_the_cache_is_one_line(tmp_path):
    with pytest.raises(DatasetError, match="there is no folder /nowhere"):
        resolve("/nowhere")
    with pytest.raises(DatasetError) as caught:
        resolve("org/never-loaded")
    (line,) = str(caught.value).splitlines()
    assert line.startswith("hf:org/never-loaded is not in the cache ")
    assert "datasets.load_dataset('org/never-loaded')" in line


def test_a_name_from_the_cache(tmp_path):
    """As `load_dataset("org/pets")` leaves it."""
    build = tmp_path / "hf-cache/org___pets/default/0.0.0/abcdef0123456789"
    build.mkdir(parents=True)
    part = table([0, 1, 1])
    part.save_to_disk(str(tmp_path / "part"))
    (arrow,) = (tmp_path / "part").glob("*.arrow")
    arrow.rename(build / "pets-test.arrow")
    split = datasets.SplitDict({"test": datasets.SplitInfo("test", 1, 3, dataset_name="pets")})
    info = datasets.DatasetInfo(
        features=part.features, splits=split, dataset_name="pets", builder_name="parquet"
    )
    info.config_name, info.version = "default", datasets.Version("0.0.0")
    info.write_to_directory(str(build))
    pictures = resolve("org/pets").load()
    assert pictures.name == "hf:org.pets"
    assert len(pictures) == 3


def test_without_the_library_one_line_says_what_to_install(monkeypatch, registries):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(DatasetError, match=r'pip install "attrcheck\[hf\]"'):
        attrcheck.dataset.get("hf:org/name")
