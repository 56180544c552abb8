"""Which layers forget, in which order, and what the curves and the verdicts are made of."""

import numpy as np
import pytest
import torch
from torch import nn

from attrcheck.checks import check as checks
from attrcheck.checks._similarity import rank_correlation, ssim
from attrcheck.checks.forgetting import (
    counted,
    data_randomisation,
    emprt,
    layers,
    noisy,
    randomisation,
    randomised,
    risen,
    smprt,
)
from attrcheck.contracts import Method
from attrcheck.engine.attribution import attribute_batch
from attrcheck.engine.checking import ASK_THE_MODEL, examine
from attrcheck.graph.preparing import prepare
from attrcheck.methods import method as methods
from tests.worlds import load

PAIR = ("digits", "resnet", 8, "cpu")


def changed(before, after):
    fresh = dict(after.named_parameters())
    return [name for name, weight in before.named_parameters() if not fresh[name].equal(weight)]


def test_layers_come_from_the_logits_down():
    names = layers(load(*PAIR).network)
    assert len(names) == len(set(names)) == 12
    network = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 4))
    assert layers(network) == ["3", "1", "0"]
    assert layers(nn.Flatten()) == []


@pytest.mark.parametrize(
    ("total", "points", "wanted"),
    [
        (12, 5, [1, 3, 6, 9, 12]),
        (31, 5, [1, 7, 15, 23, 31]),
        (7, 5, [1, 3, 5, 7]),
        (12, 3, [1, 6, 12]),
        (3, 5, [1, 2, 3]),
        (2, 3, [1, 2]),
        (1, 5, [1]),
    ],
)
def test_points_go_from_one_layer_to_all_with_half_of_them_between(total, points, wanted):
    assert counted(total, points) == wanted
    assert max(1, total // 2) in wanted


def test_only_the_chosen_forget_and_the_same_way_every_time():
    network = load(*PAIR).network
    before = {name: weight.clone() for name, weight in network.named_parameters()}
    chosen = layers(network)[:3]
    one, other = randomised(network, chosen), randomised(network, chosen)
    names = changed(network, one)
    assert {name.rpartition(".")[0] for name in names} == set(chosen)
    assert len(names) == sum(name.rpartition(".")[0] in chosen for name in before)
    assert not changed(one, other)
    assert all(network.get_parameter(name).equal(before[name]) for name in before)
    assert changed(one, randomised(network, chosen, seed=1))


def test_what_is_forgotten_keeps_its_mean_and_spread():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(300, 300))
    nn.init.normal_(network[0].weight, 2, 5)
    fresh = randomised(network, ["0"])[0].weight
    assert fresh.mean().item() == pytest.approx(2, abs=0.1)
    assert fresh.std().item() == pytest.approx(5, rel=0.02)
    assert torch.corrcoef(torch.stack([fresh.flatten(), network[0].weight.flatten()]))[0, 1] < 0.05


def test_curves_and_verdict_are_those_of_the_maps():
    pair, method = load(*PAIR), methods.get("gradient")
    verdict = randomisation(method, pair)
    figures, names = verdict.figures, layers(pair.network)

    def maps(network):
        return attribute_batch(
            method, pair.changed({"network": network, "original": network}), slice(0, 8), seed=0
        )

    intact = maps(pair.network)
    assert figures["layers"] == [1, 3, 6, 9, 12]
    for place, count in enumerate([1, 3, 6, 9, 12]):
        cascade = maps(randomised(pair.network, names[:count]))
        alone = maps(randomised(pair.network, names[count - 1 : count]))
        for kind, other in (("cascading", cascade), ("independent", alone)):
            for measure in (rank_correlation, ssim):
                figure = figures[f"{kind}_{measure.__name__}"][place]
                assert figure == pytest.approx(measure(intact, other), abs=1e-6)
    assert figures["rank_correlation"] == figures["cascading_rank_correlation"][2]
    assert verdict.passed


def test_guided_backprop_fails_and_the_gradient_does_not():
    results = {
        name: examine(checks.get("randomisation"), methods.get(name), load(*PAIR))
        for name in ("guided_backprop", "gradient")
    }
    assert results["guided_backprop"].status == "known_failure"
    assert results["gradient"].status == "passed"
    guided, plain = (result.figures["rank_correlation"] for result in results.values())
    assert guided > 0.75 > plain
    assert min(results["guided_backprop"].figures["cascading_ssim"]) < 0.5


def test_what_ignores_the_weights_has_flat_curves():
    verdict = randomisation(Method("same", lambda model, images, targets: images), load(*PAIR))
    assert not verdict.passed
    assert "with random upper layers the rank correlation is still 1.000" in verdict.reason
    for kind in ("cascading", "independent"):
        for measure in ("rank_correlation", "ssim"):
            assert np.allclose(verdict.figures[f"{kind}_{measure}"], 1)


def test_a_dear_method_is_looked_at_in_fewer_places_and_images():
    calls = []

    def count(model, images, targets):
        calls.append(len(images))
        return images

    cheap = randomisation(Method("cheap", count, passes=(50, 25), prepared=True), load(*PAIR))
    assert len(cheap.figures["layers"]) == 5
    assert calls == [8] * (1 + 5 + 4)
    calls.clear()
    dear = randomisation(Method("dear", count, passes=(50, 50), prepared=True), load(*PAIR))
    assert dear.figures["layers"] == [1, 6, 12]
    assert calls == [4] * (1 + 3 + 2)


def test_without_weights_there_is_nothing_to_forget():
    bare = nn.Flatten()
    pair = load(*PAIR).changed({"network": bare, "original": bare})
    verdict = randomisation(Method("same", lambda model, images, targets: images), pair)
    assert verdict.passed is None
    assert "no weights" in verdict.reason


class Scattered(nn.Module):
    """Lists its norms after all convolutions, and uses one convolution twice."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 2)
        self.convs = nn.ModuleList(nn.Conv2d(2, 2, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.GroupNorm(1, 2) for _ in range(2))

    def forward(self, x):
        for conv, norm in zip(self.convs, self.norms, strict=True):
            x = norm(conv(x)).relu()
        return self.head(self.convs[0](x).mean((2, 3)))


def test_layers_of_a_graph_come_in_the_order_of_their_use():
    names = layers(prepare(Scattered()))
    assert names[0] == "head"
    assert names[2:] == ["norms.1", "convs.1", "norms.0", "convs.0"]
    assert len(names) == 6  # the second use has weights of its own


def test_maps_that_stay_constant_have_not_changed():
    flat, steep = np.zeros((2, 3, 3), np.float32), np.arange(18, dtype=np.float32).reshape(2, 3, 3)
    assert rank_correlation(flat, flat) == 1
    assert rank_correlation(flat, steep) == 0
    mixed = np.stack([flat[0], steep[1]])
    assert rank_correlation(mixed, mixed) == 1


def test_a_method_that_returns_nothing_passes_no_check_of_change():
    pair = load(*PAIR)
    nothing = Method("nothing", lambda model, images, targets: 0 * images[:, 0], constant="always")
    for name in ASK_THE_MODEL:
        assert checks.get(name).run(nothing, pair).passed is False, name


def edges(model, images, targets):
    return torch.gradient(images.sum(1), dim=2)[0]


def test_the_rise_is_that_of_the_entropies_of_histograms():
    before = np.log([2.0, 4.0, 16.0, 4.0])
    verdict = risen(before, np.log([4.0, 8.0, 32.0, 4.0]))
    # (ln 4 - ln 2) / ln 2 = 1, (3 - 2) / 2, (5 - 4) / 4 and 0, in units of ln 2
    rises = [1, 0.5, 0.25, 0]
    assert verdict.passed
    assert verdict.figures["rise"] == pytest.approx(np.mean(rises))
    assert verdict.figures["error"] == pytest.approx(np.std(rises, ddof=1) / 2)
    assert verdict.figures["before"] == pytest.approx(np.mean(before))


@pytest.mark.parametrize(
    ("before", "after", "passed", "reason"),
    [
        ([2.0] * 4, [2.0] * 4, False, "rises by 0.0%, give or take 0.0%"),
        ([2.0] * 4, [1.8] * 4, False, "rises by -10.0%"),
        ([2.0] * 4, [1.0, 2.6, 1.0, 2.6], True, ""),  # -10% +- 46%: nobody knows
        ([4.5] * 4, [4.0, 4.2, 4.0, 4.2], None, "98% of the greatest complexity"),
        ([4.5] * 4, [4.5] * 4, False, "rises by 0.0%"),
        ([0.0] * 4, [3.0] * 4, False, "constant"),
        ([0.0, *[2.0] * 4], [3.0] * 5, True, ""),  # the first says nothing
        ([2.0] * 5, [0.0, *[3.0] * 4], True, ""),  # nor does this one
        ([2.0] * 4, [0.0, *[1.0] * 3], None, "3 of 4 maps are not constant, and it takes 4"),
    ],
)
def test_complexity_must_not_surely_stay(before, after, passed, reason):
    verdict = risen(np.array(before), np.array(after))
    assert verdict.passed is passed
    assert reason in verdict.reason


def test_emprt_looks_at_the_intact_and_the_random_network_and_no_other():
    calls = []

    def count(model, images, targets):
        calls.append([weight.sum().item() for weight in model.parameters()])
        return images

    assert emprt(Method("same", count, prepared=True), load(*PAIR)).passed is False
    intact, random = calls
    assert sum(map(np.isclose, intact, random)) == 0


def test_with_random_layers_a_gradient_spreads_and_a_cam_may_vanish():
    results = {
        name: examine(checks.get("emprt"), methods.get(name), load(*PAIR))
        for name in ("gradient", "lrp", "deconvolution", "gradcam", "gradcam_pp", "random")
    }
    assert {name: result.status for name, result in results.items()} == {
        "gradient": "passed",
        "lrp": "passed",
        "deconvolution": "known_failure",
        "gradcam": "not_applicable",
        "gradcam_pp": "not_applicable",
        "random": "known_failure",
    }
    assert results["lrp"].figures["rise"] > 0.1
    assert "2 of 8 maps are not constant" in results["gradcam"].reason
    assert "97% of the greatest complexity" in results["gradcam_pp"].reason


def test_noise_is_a_tenth_of_the_range_and_the_last_copy_has_none():
    pair = load(*PAIR)
    *copies, last = noisy(pair, slice(0, 4), 30)
    assert torch.equal(last, pair.images[:4])
    noise = torch.stack(copies) - last
    ranges = (last.amax((1, 2, 3)) - last.amin((1, 2, 3))) / 10
    assert torch.allclose(noise.std((0, 2, 3, 4)), ranges, rtol=0.02)
    assert not torch.equal(noise[0], noise[1])
    alone = noisy(pair, slice(2, 3), 30)
    assert torch.equal(alone[0][0], copies[0][2])


def test_smprt_compares_sizes_of_averages_from_the_image_up():
    pair, method = load(*PAIR), methods.get("gradient")
    part, names = slice(0, 4), layers(pair.network)[::-1]
    copies = noisy(pair, part, 8)

    def smooth(network):
        other = pair.changed({"network": network, "original": network})
        return np.abs(sum(attribute_batch(method, other, part, 0, images) for images in copies) / 8)

    verdict = smprt(method, pair)
    assert verdict.passed
    assert verdict.figures["layers"] == [6, 12]
    wanted = [
        rank_correlation(smooth(pair.network), smooth(randomised(pair.network, names[:count])))
        for count in (6, 12)
    ]
    assert verdict.figures["bottom_up_rank_correlation"] == pytest.approx(wanted, abs=1e-5)
    assert verdict.figures["rank_correlation"] == pytest.approx(wanted[1], abs=1e-5)


def test_what_only_sees_the_image_stays_though_it_is_averaged():
    verdict = smprt(Method("edges", edges), load(*PAIR))
    assert verdict.passed is False
    assert "averaged over noise, the rank correlation is still 1.000" in verdict.reason


def test_smprt_of_a_dear_method_looks_at_the_end_only():
    calls = []

    def count(model, images, targets):
        calls.append(len(images))
        return images

    smprt(Method("cheap", count, passes=(50, 25), prepared=True), load(*PAIR))
    assert calls == [4] * 8 * 3
    calls.clear()
    smprt(Method("dear", count, passes=(50, 50), prepared=True), load(*PAIR))
    assert calls == [4] * 4 * 2


@pytest.mark.parametrize("pair", [PAIR, ("shapes", "vit", 8, "cpu")], ids=lambda pair: pair[1])
def test_maps_of_a_model_that_knows_shuffled_labels_are_others(pair):
    good = data_randomisation(methods.get("gradient"), load(*pair))
    assert good.passed
    assert good.figures["rank_correlation"] < 0.2
    bad = data_randomisation(Method("edges", edges), load(*pair))
    assert bad.passed is False
    assert "trained on shuffled labels the rank correlation is still 1.000" in bad.reason


def test_where_no_model_learnt_shuffled_labels_there_is_no_verdict():
    verdict = data_randomisation(methods.get("gradient"), load("digits", "vgg", 8, "cpu"))
    assert verdict.passed is None
    assert "no digits-vgg that was trained on shuffled labels" in verdict.reason


@pytest.mark.parametrize("check", [emprt, smprt])
def test_networks_without_weights_have_nothing_to_forget(check):
    bare = nn.Flatten()
    pair = load(*PAIR).changed({"network": bare, "original": bare})
    assert check(Method("edges", edges), pair).passed is None
