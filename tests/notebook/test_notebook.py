"""In a notebook: the very numbers of a run, by the same code."""

import re
import sys

import numpy as np
import pytest
import torch
from torch import nn

import attrcheck
from attrcheck.contracts import Case, Settings
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.engine.resampling import condense
from attrcheck.errors import MethodError
from attrcheck.notebook.inputs import InputError
from attrcheck.registry import RegistryError
from attrcheck.report.document import Ranking

METHODS = ("lrp", "random", "input_x_gradient_abs")
IMAGES = 12


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    return Lab.of(
        Settings("default", IMAGES, 3, METHODS, folder, False, "run", "cpu", threads=1, memory=None)
    )


@pytest.fixture(scope="module")
def results(lab):
    """What a run makes of three cases."""
    cases = [Case("digits", "resnet", protocol) for protocol in ("morf", "sds", "soundness")]
    with pytest.warns(UserWarning, match="soundness wants at least 100 images"):
        return {case.protocol: run_case(lab.evaluation(case), lambda text: None) for case in cases}


@pytest.fixture(scope="module")
def given(lab):
    """The model, its images and targets, and what random numbers are drawn from."""
    pair = lab.pair("digits", "resnet", IMAGES)
    names = {"ids": pair.dataset.ids, "name": pair.name, "seed": 3}
    return (pair.original, pair.images, pair.labels), names


@pytest.fixture(scope="module")
def attributions(given):
    inputs, names = given
    return {name: attrcheck.attribute(name, *inputs, **names) for name in METHODS}


def test_maps_are_those_of_a_run_to_the_bit(lab, attributions):
    pair = lab.pair("digits", "resnet", IMAGES)
    for name, attribution in attributions.items():
        assert attribution.maps.shape == (IMAGES, 32, 32)
        np.testing.assert_array_equal(np.asarray(attribution), lab.maps(pair, name))


@pytest.mark.parametrize("protocol", ["morf", "sds"])
def test_scores_are_those_of_a_case_to_the_bit(results, given, attributions, protocol):
    inputs, names = given
    for name, attribution in attributions.items():
        score = attrcheck.score(protocol, *inputs, attribution, **names)
        outcome = results[protocol].outcomes[name]
        assert (score.score, score.low, score.high) == (outcome.score, outcome.low, outcome.high)
        assert score.curve == outcome.curve
        assert score.higher_is_better == results[protocol].higher_is_better
        np.testing.assert_array_equal(score.outcome.replicates, outcome.replicates)
        if score.per_image is not None:
            assert np.mean(score.per_image) == pytest.approx(score.score)


@pytest.mark.filterwarnings("ignore::attrcheck.engine.plausibility.FewImages")
def test_a_board_is_that_of_a_run_and_protocols_are_settled_among_all(results, given, attributions):
    inputs, names = given
    scores = {
        protocol: {
            name: attrcheck.score(protocol, *inputs, attribution, **names)
            for name, attribution in attributions.items()
        }
        for protocol in results
    }
    board = attrcheck.fuse(scores, seed=3)
    expected = Ranking([condense(result) for result in results.values()], METHODS, 3).leaderboard()
    assert board.entries == expected
    assert all(entry.low <= entry.meta_rank <= entry.high for entry in board)
    ranks = attrcheck.rank(scores["soundness"])
    for name, score in ranks.scores.items():
        assert score.score == results["soundness"].outcomes[name].score
    assert repr(board).count("\n") == 1 + len(METHODS)
    assert board._repr_html_().count("<svg") == len(METHODS)


def test_precomputed_maps_of_any_kind_are_scored_alike(given, attributions):
    inputs, names = given
    maps = attributions["lrp"].maps
    kinds = [attributions["lrp"], maps, maps.numpy(), maps[:, None], maps.numpy().tolist()]
    scores = [attrcheck.score("morf", *inputs, kind, **names) for kind in kinds]
    assert len({float(score) for score in scores}) == 1
    assert [score.method for score in scores[:2]] == ["lrp", "maps"]


def test_settings_and_objects_of_protocols(given, attributions):
    inputs, names = given
    blurred = attrcheck.score("morf", *inputs, attributions["lrp"], **names, removal="blur")
    plain = attrcheck.score("morf", *inputs, attributions["lrp"], **names)
    assert blurred.settings.removal == "blur"
    assert blurred.score != plain.score
    again = attrcheck.score(blurred.settings, *inputs, attributions["lrp"], **names)
    assert again.score == blurred.score
    with pytest.raises(InputError, match="morf has no setting 'removl': did you mean removal"):
        attrcheck.score("morf", *inputs, attributions["lrp"], removl="blur")
    with pytest.raises(InputError, match="a int is neither a protocol nor the name of one"):
        attrcheck.score(3, *inputs, attributions["lrp"])
    with pytest.raises(RegistryError, match="mrf"):
        attrcheck.score("mrf", *inputs, attributions["lrp"])


def test_what_a_protocol_needs_is_said(given, attributions):
    inputs, _ = given
    lrp = attributions["lrp"]
    with pytest.raises(InputError, match="needs ground truth: give masks="):
        attrcheck.score("pointing_game", *inputs, lrp)
    masks = np.zeros((IMAGES, 32, 32), dtype=bool)
    masks[:, 8:24, 8:24] = True
    score = attrcheck.score("pointing_game", *inputs, lrp, masks=masks)
    assert 0 < score.score <= 1
    with pytest.raises(InputError, match="fine-tuned to deleted cells: run it as a case"):
        attrcheck.score("idsds", *inputs, lrp)
    with pytest.raises(InputError, match="trains networks anew"):
        attrcheck.score("roar", *inputs, lrp)
    with pytest.raises(InputError, match=r"say by method=\.\.\. which method made the maps"):
        attrcheck.score("ids_updated", *inputs, lrp.maps)
    few = tuple(part[:2] if isinstance(part, torch.Tensor) else part for part in inputs)
    by_name = attrcheck.score("ids_updated", *few, lrp.maps[:2], method="lrp")
    assert by_name.score is not None
    assert by_name.method == "lrp"


class Small(nn.Module):
    """Two logits of 4x4 grey images."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 2)
        self.dropout = nn.Dropout(0.5)

    def forward(self, images):
        return self.layer(self.dropout(images.flatten(1)))


GREY = torch.linspace(-1, 1, 48).view(3, 1, 4, 4)
MODEL = Small().eval()


def gradient(model, images, targets):
    """A user's own method."""
    images = images.requires_grad_()
    model(images).gather(1, targets[:, None]).sum().backward()
    return images.grad


def test_a_function_is_a_method_and_the_model_stays_as_it_was():
    before = {name: part.clone() for name, part in MODEL.state_dict().items()}
    attribution = attrcheck.attribute(gradient, MODEL, GREY, [0, 1, 1])
    weights = MODEL.layer.weight.detach().view(2, 4, 4)
    torch.testing.assert_close(attribution.maps, weights[[0, 1, 1]])
    assert attribution.method == "gradient"
    assert all(torch.equal(part, before[name]) for name, part in MODEL.state_dict().items())
    assert MODEL.layer.weight.grad is None
    assert repr(attribution).startswith("Attribution('gradient', maps [3, 4, 4] from ")


def test_a_method_that_breaks_its_contract_is_named():
    with pytest.raises(MethodError, match="method 'broken' on images-model returned a tensor"):
        attrcheck.attribute(broken, MODEL, GREY, [0, 1, 1])
    with pytest.raises(InputError, match="'gradcam' is not applicable"):
        attrcheck.attribute("gradcam", MODEL, GREY, [0, 1, 1])
    with pytest.raises(RegistryError, match="did you mean saliency"):
        attrcheck.attribute("salency", MODEL, GREY, [0, 1, 1])
    with pytest.raises(InputError, match="a int is neither a method nor the name of one"):
        attrcheck.attribute(3, MODEL, GREY, [0, 1, 1])


def broken(model, images, targets):
    """Maps of the wrong size."""
    return images[:, :, :2]


BAD = {
    r"images are uint8: give them as the model takes them": {"images": (GREY * 10).byte()},
    r"images must be \[N, C, H, W\], not \[1, 4, 4\]; for a single": {"images": GREY[0]},
    r"images \[3, 4, 5, 1\] have their channels last": {"images": torch.zeros(3, 4, 5, 1)},
    r"values from 0 to 255: .* say so by std=1/255": {"images": (GREY + 1) * 127.5},
    r"image 1 has values that are not finite": {
        "images": GREY.index_fill(0, torch.tensor(1), torch.nan)
    },
    r"3 images but 2 targets": {"targets": [0, 1]},
    r"targets is one number; give one class per image: \[1\] \* 3": {"targets": 1},
    r"target 2 of image 1 is not one of the model's 2 classes": {"targets": [0, 2, 1]},
    r"labels must be one whole number per image": {"targets": [[0.0, 1.0]] * 3},
    r"part 'dropout' of the model is in training mode: call model.eval\(\)": {
        "model": Small().eval()
    },
    r"the model is a function, not a torch.nn.Module": {"model": gradient},
    r"the model returns \[2\], and not logits \[N, classes\]": {
        "model": nn.Sequential(nn.Flatten(), nn.Linear(16, 1), nn.Flatten(0)).eval()
    },
    r"the outputs are probabilities": {
        "model": nn.Sequential(nn.Flatten(), nn.Linear(16, 2), nn.Softmax(1)).eval()
    },
    r"the model raised RuntimeError for images": {"images": torch.zeros(3, 1, 5, 5)},
    r"the name 'x' is not of the form DATASET-MODEL": {"name": "x"},
    r"2 numbers as mean for images of 1 channels": {"mean": (0.1, 0.2)},
    r"std \(0.0,\) must be above zero": {"std": 0},
    r"3 images but 1 ids": {"ids": ["a"]},
    r"images of the background are \[1, 2, 2\]": {"background": torch.zeros(1, 1, 2, 2)},
}


@pytest.mark.parametrize("why", BAD)
def test_inputs_that_do_not_fit_are_one_sentence(why):
    inputs = {"model": MODEL, "images": GREY, "targets": [0, 1, 1], **BAD[why]}
    if "training" in why:
        inputs["model"].dropout.train()
    with pytest.raises(Exception, match=why) as caught:
        attrcheck.attribute("saliency", **inputs)
    assert "\n" not in str(caught.value)
    assert type(caught.value).__module__.startswith("attrcheck.")


def test_a_model_that_takes_bytes_says_so_by_its_std():
    images = (GREY + 1) * 127.5
    attribution = attrcheck.attribute("saliency", MODEL, images, [0, 1, 1], std=1 / 255)
    assert attribution.images.max() == pytest.approx(1.0)


def test_maps_that_do_not_fit_are_one_sentence():
    for maps, why in (
        (
            np.zeros((3, 5, 5)),
            r"maps are \[3, 5, 5\], for images \[3, 1, 4, 4\]: wanted \[3, 4, 4\]",
        ),
        (np.full((3, 4, 4), np.nan), "the map of image 0 has values that are not finite"),
    ):
        with pytest.raises(InputError, match=why):
            attrcheck.score("morf", MODEL, GREY, [0, 1, 1], maps)


def test_progress_is_told_unless_quiet(monkeypatch, capsys):
    monkeypatch.setattr("attrcheck.notebook.inputs.PATIENCE", 0.0)
    monkeypatch.setattr("attrcheck.report.line.PAUSE", 0.0)
    monkeypatch.setattr("attrcheck.engine.pairs.quick_size", lambda images: 1)
    monkeypatch.setitem(sys.modules, "ipykernel", object())
    attrcheck.attribute("saliency", MODEL, GREY, [0, 1, 1])
    assert re.search(r"attribute saliency: image 2 of 3, about \d s left", capsys.readouterr().err)
    attrcheck.attribute("saliency", MODEL, GREY, [0, 1, 1], quiet=True)
    assert capsys.readouterr().err == ""
