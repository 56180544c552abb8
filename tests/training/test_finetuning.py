import copy
import json
from collections import Counter
from dataclasses import asdict, replace
from math import ceil

import pytest
import torch
from torch import nn

from attrcheck.contracts import Dataset, Tuning
from attrcheck.datasets import DatasetError, digits
from attrcheck.datasets import dataset as datasets
from attrcheck.models import model
from attrcheck.registry import RegistryError
from attrcheck.training import WEIGHTS
from attrcheck.training.finetuning import (
    COPIES,
    RECIPES,
    Deletion,
    TuningRecipe,
    compare,
    finetune,
    finetune_embedded,
    split,
)
from attrcheck.training.loop import shifted
from attrcheck.training.weights import load_weights, read_about, weights_path

CPU = torch.device("cpu")
SIDE = 8
TINY = TuningRecipe(epochs=6, step=4, batch=32, rate=0.1, shift=0)
PAIRS = [
    (name, family)
    for name in ("digits", "shapes")
    for family in model
    if model.get(family).embedded
] + [("objects", "resnet"), ("objects", "vit")]  # of the others, one that is needed is made at once


def pictures(count, seed):
    """Whether the first cell is bright decides; the last cell says the same, more faintly."""
    generator = torch.Generator().manual_seed(seed)
    images = 0.1 * torch.randn(count, 1, SIDE, SIDE, generator=generator)
    labels = torch.arange(count) % 2
    sign = (2.0 * labels - 1).view(-1, 1, 1, 1)
    images[:, :, :2, :2] += sign
    images[:, :, -2:, -2:] += sign / 4
    return images, labels


def world(**changes):
    images, labels = pictures(60, seed=1)
    settings = {
        "name": "world",
        "images": images,
        "labels": labels,
        "classes": 2,
        "mean": (0.0,),
        "std": (1.0,),
        "ids": tuple(map(str, range(60))),
        "training": lambda: pictures(200, seed=2),
    }
    return Dataset(**(settings | changes))


def one_eyed():
    """Looks at the first cell only: right on every image, lost without that cell."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 2))
    looks = torch.zeros(SIDE, SIDE)
    looks[:2, :2] = 1.0
    network[1].weight.data = torch.stack([-looks.flatten(), looks.flatten()])
    network[1].bias.data = torch.tensor([0.1, 0.0])
    return network


def noisy():
    """A network with a batch norm and dropout, which draw and keep more than weights."""
    torch.manual_seed(5)
    layers = [nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(4 * 36, 2))


def same(one, other):
    states = one.state_dict(), other.state_dict()
    return all(torch.equal(states[0][key], states[1][key]) for key in states[0])


def test_names():
    assert Tuning() == Tuning(4, "mean")
    assert Tuning().key == "tuned.mean_4"
    assert Tuning(2, "blur").key == "tuned.blur_2"


def test_a_network_learns_to_bear_the_loss_of_a_cell():
    tuned, facts = finetune(one_eyed(), world(), Tuning(2), replace(TINY, rate=1.0))
    assert facts["accuracy"] == {"before": 1.0, "after": 1.0}
    assert facts["worst_cell"]["before"] == 0.5
    assert facts["worst_cell"]["after"] > 0.9
    assert facts["epoch"] > 0
    assert not tuned.training
    last = tuned[1].weight.detach().view(2, SIDE, SIDE)[:, -2:, -2:].sum((1, 2))
    assert last[0] < 0 < last[1]


def test_without_deleted_cells_it_would_not(monkeypatch):
    monkeypatch.setattr("attrcheck.training.finetuning.LOST", 0.0)
    _, facts = finetune(one_eyed(), world(), Tuning(2), replace(TINY, rate=1.0))
    assert facts["worst_cell"]["after"] < 0.7


def test_facts_fit_into_json_and_state_everything():
    _, facts = finetune(noisy(), world(), Tuning(2), TINY, seed=3)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert (facts["grid"], facts["removal"], facts["seed"], facts["epochs"]) == (2, "mean", 3, 6)
    assert facts["recipe"] == asdict(TINY)
    assert facts["validation"]["images"] == 20
    scores = facts["validation"]["scores"]
    assert len(scores) == 7
    assert scores[facts["epoch"]] == max(scores)
    assert set(facts["similarity"]) == {"label_probability", "total_variation", "gradcam"}


def test_the_seed_decides_and_all_else_is_left_alone():
    network = noisy()
    before = noisy()
    network.train()
    state = torch.random.get_rng_state()
    with torch.no_grad():
        runs = [finetune(network, world(), Tuning(), TINY, seed) for seed in (3, 3, 4)]
    assert torch.equal(torch.random.get_rng_state(), state)
    assert network.training
    assert same(network, before)
    assert same(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]
    assert not same(runs[0][0], runs[2][0])


def test_a_frozen_network_learns_too():
    tuned, _ = finetune(noisy().requires_grad_(False), world(), Tuning(), TINY)
    assert same(tuned, finetune(noisy(), world(), Tuning(), TINY)[0])
    assert not same(tuned, noisy())


def by_hand(network, recipe, seed):
    """What fine-tuning without validation comes to, written out: the last epoch's weights."""
    images, labels = pictures(200, seed=2)
    network = copy.deepcopy(network)
    delete = Deletion.of(world(), Tuning(2, "uniform"), CPU)
    torch.manual_seed(seed)
    held_out, rest = split(len(images), recipe.held_out)
    delete.uniformly(images[held_out].repeat(COPIES, 1, 1, 1))  # the validation images
    images, labels = images[rest], labels[rest]
    optimiser = torch.optim.SGD(
        network.parameters(), recipe.rate, recipe.momentum, weight_decay=recipe.decay
    )
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, recipe.step, 0.1)
    for _ in range(recipe.epochs):
        network.train()
        parts = ceil(len(images) / recipe.batch)
        for chosen in torch.randperm(len(images)).tensor_split(parts):
            batch = delete.at_random(shifted(images[chosen], recipe.shift))
            loss = nn.functional.cross_entropy(network(batch), labels[chosen])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        schedule.step()
    return network


@pytest.mark.parametrize("recipe", [TINY, TuningRecipe(epochs=3, step=1, batch=64, rate=0.02)])
def test_a_tuned_network_is_the_same_to_the_bit_as_by_hand(recipe, monkeypatch):
    monkeypatch.setattr(
        "attrcheck.training.finetuning.accuracy", lambda *given: 1.0
    )  # keep the last
    tuned, facts = finetune(noisy(), world(), Tuning(2, "uniform"), recipe, seed=4)
    assert facts["epoch"] == recipe.epochs  # where all are as good, the last is kept
    assert same(tuned, by_hand(noisy(), recipe, seed=4))


def test_evaluation_images_decide_nothing():
    images, labels = pictures(60, seed=9)
    one, _ = finetune(noisy(), world(), Tuning(), TINY)
    other, _ = finetune(noisy(), world(images=-images, labels=1 - labels), Tuning(), TINY)
    assert same(one, other)


@pytest.mark.filterwarnings("ignore::attrcheck.graph.preparing.NotTraceable")
def test_validation_images_are_never_learnt_from():
    """Every image has a number in a corner; zero stands there where that cell was deleted."""
    images, labels = pictures(100, seed=2)
    images[:, 0, 0, 0] = torch.arange(100.0)
    learnt, validated = set(), set()

    class Spy(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = one_eyed()

        def forward(self, batch):
            (learnt if self.training else validated).update(batch[:, 0, 0, 0].tolist())
            return self.inner(batch)

    finetune(Spy(), world(training=lambda: (images, labels)), Tuning(), TINY)
    known = {float(number) for number in range(1, 100)}
    assert len(learnt & known) >= 89
    assert len(validated & known) >= 9
    assert not learnt & validated & known


@pytest.mark.parametrize(("count", "held"), [(100, 10), (7, 1), (2, 1)])
def test_a_split_is_a_partition(count, held):
    torch.manual_seed(0)
    held_out, rest = split(count, 0.1)
    assert len(held_out) == held
    assert sorted([*held_out.tolist(), *rest.tolist()]) == list(range(count))


def test_nothing_learnt_is_kept_only_if_best():
    tuned, facts = finetune(one_eyed(), world(), Tuning(), replace(TINY, rate=1e9))
    assert facts["epoch"] == 0
    assert same(tuned, one_eyed())
    assert facts["similarity"]["total_variation"] == 0
    still = replace(TINY, rate=0.0)
    assert finetune(one_eyed(), world(), Tuning(), still)[1]["epoch"] == TINY.epochs


def test_every_second_image_loses_a_cell_any_as_likely():
    torch.manual_seed(0)
    delete = Deletion.of(world(), Tuning(), CPU)
    images = delete.at_random(torch.ones(8000, 1, SIDE, SIDE))
    gone = nn.functional.avg_pool2d(1 - images, 2)[:, 0].flatten(1)
    assert set(gone.unique().tolist()) == {0.0, 1.0}
    lost = Counter(gone.sum(1).int().tolist())
    assert set(lost) == {0, 1}
    assert lost[1] == pytest.approx(4000, abs=4 * 45)
    cells = gone.sum(0)
    assert cells.tolist() == pytest.approx([lost[1] / 16] * 16, abs=4 * 16)


def test_cells_go_row_by_row():
    delete = Deletion.of(world(), Tuning(2), CPU)
    images = delete(torch.ones(4, 1, SIDE, SIDE), torch.arange(4), range(4))
    corners = images[:, 0, ::4, ::4].flatten(1)
    assert torch.equal(corners, 1 - torch.eye(4))


def test_the_removal_is_the_one_named():
    delete = Deletion.of(world(), Tuning(2, "uniform"), CPU)
    images = torch.full((2, 1, SIDE, SIDE), 3.0)
    noise = delete(images, torch.tensor([0, 3]), [7, 8])
    assert torch.equal(noise, delete(images, torch.tensor([0, 3]), [7, 8]))
    assert noise[0, 0, :4, :4].abs().max() < 1
    assert noise[0, 0, :4, :4].unique().numel() == 16
    assert torch.equal(noise[1, 0, :4], images[1, 0, :4])
    _, facts = finetune(one_eyed(), world(), Tuning(2, "uniform"), TINY)
    assert facts["removal"] == "uniform"


def test_the_worst_cell_by_hand():
    delete = Deletion.of(world(), Tuning(), CPU)
    facts = compare(one_eyed(), one_eyed(), world(), delete)
    # Without the first cell only the bias speaks, and for the first class.
    assert facts["worst_cell"] == {"before": 0.5, "after": 0.5}
    assert facts["accuracy"] == {"before": 1.0, "after": 1.0}
    zero = {"label_probability": 0, "total_variation": 0, "gradcam": None}
    assert facts["similarity"] == zero


def test_without_a_training_split_there_is_nothing_to_learn():
    with pytest.raises(DatasetError, match=r"dataset 'world' has no training split.*give it one"):
        finetune(one_eyed(), world(training=None), Tuning())


@pytest.mark.parametrize("grid", [3, 16])
def test_a_grid_that_cuts_no_equal_cells(grid):
    with pytest.raises(DatasetError, match=rf"'world': a grid of {grid}x{grid} .* images of 8x8"):
        finetune(one_eyed(), world(), Tuning(grid), TINY)


@pytest.mark.parametrize("grid", [1, 0, -2])
def test_a_grid_of_one_cell_or_none(grid):
    with pytest.raises(DatasetError, match="'world': a grid needs more than one cell"):
        finetune(one_eyed(), world(), Tuning(grid), TINY)


def test_an_unknown_removal_is_named():
    with pytest.raises(RegistryError, match="no removal is called 'maen'; did you mean mean"):
        finetune(one_eyed(), world(), Tuning(removal="maen"), TINY)


def test_progress_is_reported_epoch_by_epoch():
    lines = []
    finetune(one_eyed(), world(), Tuning(), TINY, report=lines.append)
    assert len(lines) == 6
    assert lines[0].startswith("epoch 1 of 6, validation ")


def test_weights_are_written_with_their_facts(tmp_path, monkeypatch):
    everything = digits.training
    monkeypatch.setattr(digits, "training", lambda: tuple(part[:80] for part in everything()))
    lines, recipe, tuning = [], TuningRecipe(epochs=1), Tuning(2)
    data = datasets.get("digits").load()
    vgg = model.get("vgg").build
    finetune_embedded(data, "vgg", vgg, tuning, recipe, tmp_path, seed=4, report=lines.append)
    about = read_about("digits", "vgg", tuning.key, tmp_path)
    path = weights_path("digits", "vgg", tuning.key, tmp_path)
    assert path == tmp_path / "digits-vgg" / "tuned.mean_2.safetensors"
    assert about["checkpoint"] == "tuned.mean_2"
    assert about["base"] == read_about("digits", "vgg")["sha256"]
    before, after = (model.get("vgg").build(data).eval() for _ in range(2))
    load_weights(before, "digits", "vgg")
    load_weights(after, "digits", "vgg", tuning.key, tmp_path)
    assert not same(after, before)
    (line,) = lines
    assert line.startswith(f"digits-vgg: accuracy {about['accuracy']['before']:.4f} -> ")
    assert f"worst cell {about['worst_cell']['before']:.4f} -> " in line
    assert f"Grad-CAM {about['similarity']['gradcam']:.4f}" in line


@pytest.mark.parametrize(("name", "family"), PAIRS)
def test_every_embedded_pair_ships_fine_tuned(name, family):
    about = read_about(name, family, Tuning().key)
    origin = read_about(name, family)
    assert about["base"] == origin["sha256"]
    assert about["recipe"] == asdict(RECIPES.get(name, TuningRecipe()))
    assert about["accuracy"]["before"] == pytest.approx(origin["accuracy"], abs=2e-6)
    assert about["epoch"] > 0
    older = family == "vit" and name != "objects"  # made when Grad-CAM knew no tokens
    assert (about["similarity"]["gradcam"] is None) == older
    assert (WEIGHTS / f"{name}-{family}" / "tuned.mean_4.safetensors").is_file()


def test_facts_on_record_are_those_of_the_weights():
    data = datasets.get("digits").load()
    before, after = (model.get("resnet").build(data).eval() for _ in range(2))
    load_weights(before, "digits", "resnet")
    load_weights(after, "digits", "resnet", Tuning().key)
    facts = compare(before, after, data, Deletion.of(data, Tuning(), CPU))
    about = read_about("digits", "resnet", Tuning().key)
    # One image may tip over on another machine.
    for what in ("accuracy", "worst_cell"):
        assert facts[what] == pytest.approx(about[what], abs=1.5 / len(data))
    assert facts["similarity"] == pytest.approx(about["similarity"], abs=1e-4)
