"""A model on a dataset with other classes than its own: in the right order, or an error."""

import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.contracts import Model
from attrcheck.engine.loading import Loader
from attrcheck.engine.pairs import check
from attrcheck.errors import ModelError
from attrcheck.models.classes import ClassError

NAMES = ("ant", "bee", "cat", "dog", "eel")


class Net(nn.Module):
    """Five logits; as they are, or as something that holds them."""

    def __init__(self, wrap=None):
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(1)
            self.head = nn.Linear(50, len(NAMES))
        self.wrap = wrap

    def forward(self, images):
        logits = self.head(images.flatten(1))
        return self.wrap(logits) if self.wrap else logits


@pytest.fixture
def load(tiny):
    """The pair of a five-class network and a dataset of three classes with names."""

    def load(data_names, model_names=NAMES, wrap=None, classes=3):
        data = tiny.dataset("named", class_names=tuple(data_names), classes=classes)
        attrcheck.dataset("named")(lambda: data)
        attrcheck.model("five")(lambda dataset: Model(Net(wrap), class_names=tuple(model_names)))
        return Loader("cpu").pair("named", "five")

    return load


def test_only_the_datasets_classes_count_in_its_order(load):
    pair = load(["dog", "ant", "bee"])
    expected = Net()(pair.images)[:, [3, 0, 1]]
    for network in (pair.network, pair.predictor):
        torch.testing.assert_close(network(pair.images), expected)
    check(pair)


def test_logits_are_unwrapped_before(load):
    pair = load(["dog", "ant", "bee"], wrap=lambda logits: {"logits": logits, "aux": logits * 2})
    torch.testing.assert_close(pair.predictor(pair.images), Net()(pair.images)[:, [3, 0, 1]])


def test_a_network_that_fits_does_not_run(load, passes):
    load(NAMES, classes=5)
    assert passes == []


def test_classes_that_cannot_be_matched_stop_the_pair(load):
    with pytest.raises(
        ClassError, match=r"model 'five' on dataset 'named': 1 of the dataset's 3 .*: 'yak'"
    ):
        load(["yak", "ant", "bee"])


def test_a_dataset_without_names_and_other_counts_stop_the_pair(load):
    with pytest.raises(ClassError, match=r"'named': the dataset has 3 classes and the model 5 out"):
        load([])


def test_a_model_without_names_must_have_as_many_outputs(load):
    pair = load(["ant", "bee", "cat"], ())
    with pytest.raises(ModelError, match=r"but is \[2, 5\]; if some of these are .*class_names="):
        check(pair)


def test_names_must_be_as_many_as_outputs(load):
    with pytest.raises(ModelError, match=r"returns \[2, 5\] for 2 images, but there are 6 class n"):
        load(["dog", "ant", "bee"], (*NAMES, "fox"))


def test_an_output_without_logits_is_named(load):
    with pytest.raises(ModelError, match="dataset 'named': Net returns a str"):
        load(NAMES, wrap=lambda logits: "logits", classes=5)
