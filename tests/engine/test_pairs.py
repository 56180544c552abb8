from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.datasets import DatasetError, checked
from attrcheck.engine.attribution import attribute
from attrcheck.engine.keys import of_dataset
from attrcheck.engine.loading import _built
from attrcheck.engine.pairs import ModelError, check
from attrcheck.models import model as models
from attrcheck.store.encoding import fingerprint
from attrcheck.store.seeds import derive
from attrcheck.tensors import batching as memory
from tests.worlds import load


class Answer(nn.Module):
    """A model that answers with whatever a function makes of the images."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, images):
        return self.answer(images)


@pytest.fixture
def load_answer(tiny):
    """Load `tiny` with a model that gives this answer."""

    def load_answer(answer):
        attrcheck.model("odd")(lambda data: Answer(answer))
        return load("tiny", "odd", None, "cpu")

    return load_answer


def test_images_are_normalised_and_the_network_is_in_eval_mode(tiny):
    pair = tiny.pair
    data = tiny.dataset()
    torch.testing.assert_close(pair.images, (data.images - 0.5) / 0.25)
    assert torch.equal(pair.labels, data.labels)
    assert not any(module.training for module in pair.network.modules())
    assert not any(parameter.requires_grad for parameter in pair.network.parameters())
    assert pair.name == "tiny-linear"


def test_the_prepared_network_computes_what_the_built_one_does(tiny):
    pair = tiny.pair
    built = tiny.network(tiny.dataset()).eval()
    torch.testing.assert_close(pair.network(pair.images), built(pair.images))


def test_a_pair_is_loaded_once(tiny):
    assert tiny.pair is tiny.pair


@pytest.mark.parametrize(("asked", "got"), [(None, 8), (3, 3), (8, 8), (100, 8)])
def test_the_first_images_are_taken(tiny, asked, got):
    pair = load("tiny", "linear", asked, "cpu")
    assert len(pair.images) == len(pair.labels) == len(pair.dataset) == got
    assert pair.dataset.ids == tuple(f"picture{at}" for at in range(got))


@pytest.mark.parametrize("elements", [1, 49, 50, 120, 150, 399, 400, 10_000])
@pytest.mark.parametrize("images", [1, 7, 8])
def test_slices_cover_all_images_once_and_in_order(tiny, monkeypatch, elements, images):
    monkeypatch.setitem(memory.QUICK_ELEMENTS, "cpu", elements)
    pair = load("tiny", "linear", images, "cpu")
    parts = [list(range(images))[part] for part in pair.slices()]
    assert [at for part in parts for at in part] == list(range(images))
    assert all(1 <= len(part) <= max(1, elements // 50) for part in parts)
    assert len({len(part) for part in parts[:-1]}) <= 1


def test_a_batch_is_that_part_of_everything(tiny):
    masks = torch.rand(8, 5, 5) > 0.5
    attrcheck.dataset("tiny_masked")(lambda: tiny.dataset("tiny_masked", masks=masks))
    pair = load("tiny_masked", "linear", None, "cpu")
    intact = {"logit": np.arange(8.0)}
    batch = pair.batch(slice(2, 5), 7, intact)
    assert torch.equal(batch.images, pair.images[2:5])
    assert torch.equal(batch.labels, pair.labels[2:5])
    assert torch.equal(batch.masks, masks[2:5])
    assert batch.intact["logit"].tolist() == [2, 3, 4]
    ids = ("picture2", "picture3", "picture4")
    assert batch.seeds == tuple(derive(7, "tiny_masked", name, "ties") for name in ids)
    assert tiny.pair.batch(slice(0, 1), 0, {}).masks is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda images: torch.zeros(len(images), 4), r"logits \[2, 3\].* but is \[2, 4\]"),
        (lambda images: torch.zeros(3), r"but is \[3\]"),
        (lambda images: torch.zeros(1, 3), r"but is \[1, 3\]"),
        (lambda images: torch.zeros(len(images), 3, 1, 1), r"but is \[2, 3, 1, 1\]"),
        (lambda images: (torch.zeros(len(images), 4),), r"but is \[2, 4\]"),
        (lambda images: torch.full((len(images), 3), 1 / 3), "probabilities.*leave out its last"),
        (lambda images: torch.full((len(images), 3), torch.nan), "not finite"),
        (lambda images: torch.full((len(images), 3), torch.inf), "not finite"),
    ],
    ids=["classes", "no batch", "one row", "axes", "tuple", "probabilities", "nan", "inf"],
)
def test_a_model_that_is_no_classifier_of_the_dataset_is_refused(load_answer, answer, words):
    with pytest.raises(ModelError, match=words) as caught:
        check(load_answer(answer))
    assert "model 'odd' on dataset 'tiny'" in str(caught.value)


def test_a_single_image_is_enough_to_check_a_model(tiny):
    check(load("tiny", "linear", 1, "cpu"))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": torch.zeros(7, dtype=torch.int64)}, "8 images but 7 labels"),
        ({"ids": ("a",)}, "8 images but 1 ids"),
        ({"masks": torch.zeros(9, 5, 5) > 0}, "8 images but 9 masks"),
        ({"labels": torch.arange(8)}, "label 3 of image 'picture3' is not one of 3 classes"),
        ({"labels": torch.arange(8) % 3 - 1}, "label -1 of image 'picture0'"),
        ({"mean": (0.5,)}, "one mean and one std per channel"),
        ({"std": (0.5,) * 3}, "one mean and one std per channel"),
        ({"images": torch.zeros(8, 5, 5)}, r"\[N, C, H, W\]"),
        ({"masks": torch.zeros(8, 4, 4) > 0}, "masks"),
    ],
)
def test_a_dataset_whose_parts_do_not_fit_is_refused(tiny, changes, words):
    attrcheck.dataset("tiny_odd")(lambda: tiny.dataset("tiny_odd", **changes))
    with pytest.raises(DatasetError, match=words) as caught:
        load("tiny_odd", "linear", None, "cpu")
    assert "dataset 'tiny_odd'" in str(caught.value)


def test_a_dataset_without_images_is_refused(tiny):
    with pytest.raises(DatasetError, match="there are no images"):
        checked(tiny.dataset("tiny_empty", count=0))


def test_the_fingerprint_is_the_same_each_time(tiny):
    first = fingerprint(tiny.pair.key)
    tiny.restart()
    assert fingerprint(tiny.pair.key) == first


@pytest.mark.parametrize(
    "changes",
    [
        {"images": torch.zeros(8, 2, 5, 5)},
        {"labels": torch.zeros(8, dtype=torch.int64)},
        {"masks": torch.zeros(8, 5, 5) > 0},
        {"mean": (0.5, 0.4)},
        {"std": (0.25, 0.3)},
        {"ids": tuple("abcdefgh")},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_the_fingerprint_covers_all_that_evaluation_sees(tiny, changes):
    """Ids too: they seed the noise and the breaking of ties."""
    data = tiny.dataset()
    assert of_dataset(replace(data, **changes)) != of_dataset(data)


def test_the_fingerprint_covers_weights_buffers_images_and_batches(tiny, monkeypatch):
    found = {fingerprint(tiny.pair.key), fingerprint(load("tiny", "linear", 7).key)}

    def other(number):
        def build(data):
            network = tiny.network(data)
            network[3].bias[number] += 1e-3
            network[1].running_var[0] += number
            return network

        return build

    for number in range(3):
        attrcheck.model(f"other{number}")(other(number))
        found.add(fingerprint(load("tiny", f"other{number}").key))
    tiny.restart()
    monkeypatch.setitem(memory.QUICK_ELEMENTS, "cpu", 100)
    found.add(fingerprint(tiny.pair.key))
    assert len(found) == 6


def test_a_network_that_its_builder_keeps_is_left_alone(tiny):
    kept = tiny.network(tiny.dataset()).train()
    before = [weight.clone() for weight in kept.parameters()]
    attrcheck.model("kept", datasets="tiny")(lambda data: kept)
    _, network = (
        load("tiny", "kept", None, "cpu"),
        _built(models.get("kept"), tiny.dataset()).network,
    )
    for weight in network.parameters():
        weight.data.add_(1)
    assert kept.training
    assert all(map(torch.equal, kept.parameters(), before))


def test_methods_see_the_whole_dataset_however_many_images_are_evaluated(tiny):
    seen = []

    def curious(model, images, targets, *, dataset):
        seen.append(len(dataset))
        return images[:, 0]

    for images in (3, None):
        attribute(tiny.method(curious), load("tiny", "linear", images, "cpu"), 0)
    assert seen == [8, 8]
