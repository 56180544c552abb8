"""What a run would cost: passes as a run counts them, time, memory and disk."""

import pytest
import torch

import attrcheck
from attrcheck.contracts import Case
from attrcheck.engine.planning import Cost, PairPlan, cost_of, measured, plan, total
from attrcheck.errors import ModelError
from attrcheck.protocols import protocol as protocols
from attrcheck.report.costs import lines
from attrcheck.tensors.batching import bytes_per_sample, samples_at_once
from attrcheck.training.finetuning import recipe_for
from tests.worlds import CHANNELS, IMAGES, tiny_dataset


@pytest.mark.parametrize("name", ["morf", "ids", "ids_updated", "soundness"])
def test_passes_are_those_that_a_run_counts(tiny, name):
    protocol = protocols.get(name).make("default")
    cost = cost_of(protocol, tiny.pair)
    outcome = tiny.run(f"tiny-linear-{name}").outcomes["slope"]
    forward, backward = outcome.passes["observation"]
    assert cost.forward + cost.maps == forward  # a map of slope takes one pass forward
    assert cost.maps == backward


def test_what_all_methods_share_is_counted_once(tiny):
    cost = cost_of(protocols.get("sds").make("default"), tiny.loader.pair("digits", "resnet", 2))
    assert (cost.forward, cost.shared) == (0, 16)


def test_a_map_of_a_grid_costs_as_many_as_there_are_images_in_it(tiny):
    pair = tiny.loader.pair("digits", "resnet", 2)
    cost = cost_of(protocols.get("grid_pointing").make("default"), pair)
    assert (cost.forward, cost.maps) == (0, 4)


def test_a_protocol_that_does_not_apply_costs_nothing(tiny):
    pair = tiny.loader.pair("digits", "vit", 2)  # takes no larger images
    cost = cost_of(protocols.get("grid_pointing").make("default"), pair)
    assert cost == Cost(0, 0, 0, 0)


def test_a_plan_adds_up_by_hand(tiny, monkeypatch):
    monkeypatch.setattr("attrcheck.engine.planning.measured", lambda pair: (2.0, 3.0))
    tiny.add("thrice", lambda model, images, targets: images.sum(1), passes=(3, 1))
    tiny.add("thrice_abs", lambda *given: None, passes=(3, 1), absolute_of="thrice")
    lab, images = tiny.lab(), len(tiny.dataset())
    cost = cost_of(protocols.get("morf").make("default"), tiny.pair)
    steps, end = cost.forward, cost.shared
    (morf,) = plan(lab, [Case("tiny", "linear", "morf")])
    # Intact, and with nothing left; brightness and slope one pass each way, by default, thrice its
    # own; four are scored.
    forward, backward = images * (1 + end + 1 + 1 + 3 + 4 * steps), images * (1 + 1 + 1)
    assert (steps, end) == (9, 1)
    assert (morf.forward, morf.backward) == (forward, backward)
    assert morf.seconds == 2 * forward + 3 * backward
    assert (morf.pair, morf.cases, morf.methods, morf.images) == ("tiny-linear", 1, 4, images)
    side = tiny.dataset().images.shape[-1]
    assert morf.disk >= images * 3 * side * side * 4
    (both,) = plan(lab, [Case("tiny", "linear", name) for name in ("morf", "lerf")])
    assert both.forward == forward + images * 4 * steps  # maps, and the end, are shared


def test_nothing_is_run_or_stored(tiny):
    called = []
    tiny.add("noted", lambda model, images, targets: called.append(images))
    (pair,) = plan(tiny.lab(), [Case("tiny", "linear", "morf")])
    assert pair.methods == 3
    assert not called
    assert not tiny.folder.exists()


def test_a_pair_that_cannot_be_loaded_is_named_and_the_others_are_planned(tiny, registries):
    @attrcheck.model("broken", datasets="tiny")
    def broken(data):
        raise ModelError("no weights")

    cases = [Case("tiny", name, "morf") for name in ("broken", "linear")]
    first, second = plan(tiny.lab(), cases)
    assert (first.pair, first.problem) == ("tiny-broken", "no weights")
    assert second.forward
    text = "\n".join(lines([first, second], "cpu", 1, 0))
    assert "tiny-broken: no weights" in text
    assert "plan: 2 cases, on cpu, 1 thread(s)" in text


def test_a_measured_pass_is_of_the_real_network(tiny, passes):
    forward, backward = measured(tiny.pair)
    assert forward > 0
    assert backward >= 0
    assert passes, "no pass was made"


def test_the_total_is_a_sum_but_for_memory():
    one = PairPlan("a-x", 2, 3, 10, 100.0, 10.0, 3600.0, 5e6, 1e9)
    two = PairPlan("a-y", 1, 2, 20, 1e6, 5.0, 66.0, 7e9, 2e12)
    both = total([one, two])
    assert (both.cases, both.methods, both.images) == (3, 3, 20)
    assert (both.forward, both.backward, both.seconds) == (1000100, 15, 3666)
    assert (both.memory, both.disk) == (7e9, 2.001e12)
    rows = lines([one, two], "cpu", 2, 4)
    assert [row.split() for row in rows[4:7]] == [
        ["a-x", "2", "3", "10", "100", "10", "1:00:00", "5.0", "MB", "1.0", "GB"],
        ["a-y", "1", "2", "20", "1.0M", "5", "0:01:06", "7.0", "GB", "2.0", "TB"],
        ["total", "3", "3", "20", "1.0M", "15", "1:01:06", "7.0", "GB", "2.0", "TB"],
    ]
    assert "4 checks are not counted." in rows


def test_memory_covers_an_inner_batch(tiny):
    (pair,) = plan(tiny.lab(), [Case("tiny", "linear", "morf")])
    network, images = tiny.pair.network, tiny.pair.images
    weights = sum(part.numel() * 4 for part in network.parameters())
    batch = samples_at_once(network, images) * bytes_per_sample(network, images)
    maps = len(images) * images.shape[-1] ** 2 * 4
    assert pair.memory == batch + 2 * weights + 2 * (images.nbytes + maps)


def test_cases_that_train_networks_are_not_counted_and_said_to_be(tiny):
    cases = [Case("shapes", "resnet", name) for name in ("pointing_game", "roar")]
    lab = tiny.lab(methods=("random",), images=2)
    (both,), (one,) = plan(lab, cases), plan(lab, cases[:1])
    assert (both.cases, both.training, both.forward) == (2, 1, one.forward)
    assert "1 case(s) that train networks of their own are not counted." in lines(
        [both], "cpu", 1, 3
    )


def test_images_to_learn_from_are_drawn_once_for_all_models_and_tunings(tiny, registries):
    drawn = []

    def training():
        drawn.append(True)
        return data.images, data.labels

    data = tiny_dataset("taught", images=torch.rand(IMAGES, CHANNELS, 8, 8), training=training)
    attrcheck.dataset("taught", offers=("training",))(lambda: data)
    for name in ("one", "other"):
        attrcheck.model(name)(tiny.network)

    def backward(*protocols):
        cases = [Case("taught", model, name) for model in ("one", "other") for name in protocols]
        one, other = plan(tiny.lab(), cases)
        assert not one.problem
        assert one.backward == other.backward
        return one.backward

    maps, learnt = backward("sds"), recipe_for("taught").epochs * len(data)
    assert not drawn
    assert backward("sds", "idsds", "idsds_2") == 3 * maps + 2 * learnt
    assert drawn == [True]
