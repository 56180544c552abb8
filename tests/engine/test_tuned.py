"""Where fine-tuned models come from: the package, the store, or the fine-tuning itself."""

import functools

import pytest
import torch
from torch import nn

from attrcheck.contracts import Dataset, Tuning
from attrcheck.datasets import DatasetError
from attrcheck.engine import tuned as tuning
from attrcheck.engine.tuned import tuned
from attrcheck.models import ModelSpec, model
from attrcheck.store.entries import Store
from attrcheck.training.weights import load_weights, read_about


def learn_from(count):
    """A training split of so many images."""
    torch.manual_seed(0)
    return torch.rand(count, 1, 8, 8), torch.arange(count) % 2


TWENTY = functools.partial(learn_from, 20)
PLAIN = Tuning()


def dataset(training=TWENTY):
    images, labels = learn_from(6)
    ids = tuple(f"noise/{index}" for index in range(6))
    return Dataset("noise", images, labels, 2, (0.5,), (0.3,), ids, training=training)


def build(data, seed=0):
    torch.manual_seed(seed)
    # A batch norm counts the batches that it has seen, in a tensor without axes.
    layers = [nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.Flatten(), nn.Linear(72, 2)]
    return nn.Sequential(*layers)


SPEC = ModelSpec("mine", build)


@pytest.fixture
def tunings(monkeypatch):
    """Which fine-tunings took place."""
    done = []

    def spy(network, data, how, **settings):
        done.append(how)
        return finetune(network, data, how, **settings)

    finetune = tuning.finetune
    monkeypatch.setattr(tuning, "finetune", spy)
    return done


@pytest.fixture
def ask(tmp_path):
    """Ask for a fine-tuned model, of the same store each time."""

    def ask(data=None, seed=0, how=PLAIN, run="", fresh=False):
        store = Store(tmp_path, run, fresh)
        return tuned(build(None, seed), data or dataset(), SPEC, how, store)

    return ask


def test_a_model_is_fine_tuned_once_and_kept(ask, tunings):
    (one, facts), (again, same_facts) = ask(), ask()
    assert tunings == [Tuning()]
    assert facts == same_facts
    assert set(facts) >= {"accuracy", "worst_cell", "similarity"}
    assert not again.training
    before = build(None).state_dict()
    for name, weight in one.state_dict().items():
        assert weight.equal(again.state_dict()[name])
        assert weight.shape == again.state_dict()[name].shape
        assert not weight.equal(before[name])


def test_without_a_store_it_is_made_each_time(tunings):
    for _ in range(2):
        tuned(build(None), dataset(), SPEC, Tuning(), None)
    assert len(tunings) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 1},
        {"how": Tuning(2)},
        {"how": Tuning(removal="blur")},
        {"data": dataset(functools.partial(learn_from, 30))},
        {"data": dataset().head(4)},
    ],
    ids=["weights", "grid", "removal", "training split", "images"],
)
def test_it_is_made_anew_when_something_changed(ask, tunings, change):
    ask()
    ask(**change)
    ask(**change)
    ask()
    assert len(tunings) == 2


def test_a_fresh_run_makes_it_anew_and_once(ask, tunings):
    ask(run="first")
    for _ in range(2):
        ask(run="second", fresh=True)
    assert len(tunings) == 2
    ask(run="third")
    assert len(tunings) == 2


def test_a_dataset_without_training_split_says_so(ask):
    with pytest.raises(DatasetError, match="'noise' has no training split"):
        ask(dataset(training=None))


@pytest.fixture
def shipped():
    """A pair that ships fine-tuned: its data, its spec and its network."""
    from attrcheck.datasets import dataset as datasets

    data, spec = datasets.get("digits").load(), model.get("resnet")
    network = spec.build(data)
    load_weights(network, "digits", "resnet")
    return data, spec, network


def test_what_ships_with_the_package_is_not_made_again(shipped, tunings, tmp_path):
    data, spec, network = shipped
    before = {name: weight.clone() for name, weight in network.state_dict().items()}
    found, facts = tuned(network, data, spec, Tuning(), Store(tmp_path))
    assert not tunings
    assert facts == read_about("digits", "resnet", Tuning().key)
    assert any(not weight.equal(before[name]) for name, weight in found.state_dict().items())


def test_unless_the_model_was_trained_again_since(shipped, monkeypatch, tmp_path):
    data, spec, network = shipped

    def about(dataset, model, key=None):
        facts = read_about(dataset, model, *[key] if key else [])
        return facts if key else {**facts, "sha256": "of other weights"}

    monkeypatch.setattr(tuning, "read_about", about)
    made = []
    monkeypatch.setattr(tuning, "finetune", lambda *_, **__: made.append(1) or (network, {}))
    tuned(network, data, spec, Tuning(), Store(tmp_path))
    assert made == [1]
