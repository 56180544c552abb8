"""Shards: what is observed does not depend on them, and a pair of pictures never lies in memory."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image

import attrcheck
from attrcheck.contracts import Model, Pictures, Preprocessing
from attrcheck.engine import wire
from attrcheck.engine.loading import Loader
from attrcheck.engine.pairs import ModelError
from attrcheck.store.digests import digest
from attrcheck.store.inventory import entries

MANY = 600
COLOURS = Preprocessing((6, 6), (0.4, 0.5, 0.6), (0.2, 0.25, 0.3), resize=(6, 6))


@pytest.fixture
def many(tiny):
    """The tiny world with more images than a shard takes."""
    attrcheck.dataset("tinymany")(lambda: tiny.dataset("tinymany", count=MANY))
    return tiny


@pytest.fixture
def pictures(tiny):
    """A dataset of pictures, a network for them, and the indices that were read, in order."""
    asked = []

    def read(at):
        asked.append(at)
        rng = np.random.default_rng(at)
        return Image.fromarray(rng.integers(0, 256, (9 + at % 3, 8, 3), np.uint8))

    def load():
        return Pictures(
            name="whatever",
            read=read,
            fingerprint=lambda indices: digest(list(indices)),
            labels=tuple(at % 3 for at in range(MANY)),
            ids=tuple(f"p{at}" for at in range(MANY)),
            class_names=("a", "b", "c"),
        )

    def network(data):
        torch.manual_seed(3)
        layers = torch.nn.Flatten(), torch.nn.Linear(3 * 36, data.classes)
        return Model(torch.nn.Sequential(*layers).requires_grad_(False), COLOURS)

    attrcheck.dataset("tinypictures")(load)
    attrcheck.model("seer", datasets="tinypictures")(network)
    tiny.read = asked
    return tiny


def facts(result):
    """All of a result that a report shows, but for what tells records and clocks apart."""
    changing = {"seconds": 0.0, "fingerprint": ""}
    outcomes = {name: replace(one, **changing) for name, one in result.outcomes.items()}
    return wire.plain(replace(result, outcomes=outcomes, provenance=[]))


@pytest.mark.parametrize("protocol", ["morf", "ids", "completeness"])
def test_results_do_not_depend_on_the_size_of_shards(many, protocol, tmp_path):
    results = []
    for shard in (256, 512, 768):
        many.loader = Loader("cpu", shard=shard)
        case = f"tinymany-linear-{protocol}"
        changes = {"images": MANY, "images_given": True, "store": tmp_path / str(shard)}
        results.append(facts(many.run(case, **changes)))
    assert results[0] == results[1] == results[2]
    assert results[0]["images"] == MANY


def test_every_shard_has_records_of_its_own(many):
    many.run("tinymany-linear-morf")
    names = {item.name for item in entries(many.folder)}
    for name in ("maps/tinymany-linear/slope", "shared/tinymany-linear/intact"):
        assert {name, f"{name}@1", f"{name}@2"} <= names
    assert not any(name.endswith("@3") for name in names)


def test_a_second_run_makes_no_pass(many, passes):
    first = many.run("tinymany-linear-morf")
    passes.clear()
    assert facts(many.run("tinymany-linear-morf")) == facts(first)
    assert passes == []


def test_a_method_that_fails_late_keeps_what_it_has_and_the_others_go_on(many):
    calls = []

    def late(model, images, targets):
        calls.append(len(images))
        if sum(calls) > 300:
            raise ValueError("too late")
        return images.sum(1)

    many.add("late", late)
    result = many.run("tinymany-linear-morf")
    assert {name: one.status for name, one in result.outcomes.items()} == {
        "brightness": "ok", "slope": "ok", "late": "error",
    }  # fmt: skip
    assert "too late" in result.outcomes["late"].reason
    names = {item.name for item in entries(many.folder)}
    assert "maps/tinymany-linear/late" in names
    assert "maps/tinymany-linear/late@1" not in names


def test_no_more_pictures_are_read_than_are_scored(pictures):
    result = pictures.run("tinypictures-seer-morf", images=300)
    assert result.images == 300
    assert sorted(set(pictures.read)) == list(range(300))


def test_a_picture_is_read_for_the_accuracy_and_once_for_all_methods_of_a_case(pictures):
    every = list(range(MANY))
    pictures.run("tinypictures-seer-morf")
    assert sorted(pictures.read) == sorted(every * 2)
    pictures.read.clear()
    pictures.run("tinypictures-seer-ids")
    assert sorted(set(pictures.read)) == every[: len(set(pictures.read))]
    assert len(pictures.read) == len(set(pictures.read))


def test_what_is_stored_is_not_read_again(pictures):
    first = pictures.run("tinypictures-seer-morf")
    pictures.read.clear()
    pictures.restart()
    assert facts(pictures.run("tinypictures-seer-morf")) == facts(first)
    assert pictures.read == []


def test_a_pair_of_pictures_holds_one_shard_of_them(pictures):
    whole = pictures.loader.pair("tinypictures", "seer")
    last = pictures.loader.pair("tinypictures", "seer", shard=2)
    assert (len(whole.images), len(last.images)) == (256, MANY - 512)
    assert last.dataset.ids[0] == "p512"
    assert last.network is whole.network
    assert last.key["network"] == whole.key["network"]
    assert last.key["images"] != whole.key["images"]
    assert last.dataset.name == "tinypictures"


def test_pixels_are_in_the_frame_and_the_scale_of_the_model(pictures):
    pair = pictures.loader.pair("tinypictures", "seer", 4)
    assert pair.images.shape == (4, 3, 6, 6)
    assert pair.dataset.mean == COLOURS.mean
    assert torch.allclose(pair.dataset.denormalise(pair.images), pair.dataset.images[:])


def test_a_model_may_want_images_in_memory_in_its_own_frame(tiny):
    colours = torch.rand(8, 3, 6, 6, generator=torch.Generator().manual_seed(0))
    attrcheck.dataset("tinycolours")(
        lambda: tiny.dataset("tinycolours", images=colours, mean=(0.0,) * 3, std=(1.0,) * 3)
    )
    frames = {"same": replace(COLOURS, resize=None), "small": replace(COLOURS, size=(4, 4))}

    def with_frame(frame):
        layers = torch.nn.Flatten(), torch.nn.LazyLinear(3)
        network = torch.nn.Sequential(*layers)
        network(torch.zeros(1, 3, *frame.size))
        return lambda data: Model(network, frame)

    for name, frame in frames.items():
        attrcheck.model(name, datasets="tinycolours")(with_frame(frame))
    same, small = (tiny.loader.pair("tinycolours", name) for name in frames)
    assert torch.equal(same.dataset.images, colours)
    middle = colours[:, :, 1:5, 1:5]
    assert torch.allclose(small.made.images, middle, atol=1 / 510 + 1e-6)
    for pair in (same, small):
        assert torch.allclose(pair.dataset.denormalise(pair.images), pair.made.images, atol=1e-6)


def test_pictures_and_a_network_that_does_not_say_how_it_wants_them(pictures, tiny):
    attrcheck.model("mute", datasets="tinypictures")(lambda data: torch.nn.Flatten())
    with pytest.raises(ModelError, match=r"model 'mute' on dataset 'tinypictures'.*Preprocessing"):
        pictures.loader.pair("tinypictures", "mute")
