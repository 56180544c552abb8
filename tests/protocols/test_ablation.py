"""Ablation in order: MoRF, LeRF, deletion, insertion, ROAD, IDS: by hand, oracle and laws."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.ablation import Ablation, ids, lerf, morf
from attrcheck.protocols.order import pixel_counts
from attrcheck.protocols.responses import responses
from attrcheck.removal import removal
from tests import reference
from tests.worlds import batch_of, linear_model, rows_of, single_deletion_vectors

SIDE = 4
PUBLISHED = ["grad_raw", "grad_abs", "ixg_raw", "ixg_abs", "ig_raw", "ig_abs", "igu_raw"]


@st.composite
def scenes(draw, images=3, ties=True):
    """A random linear model, images, labels and maps, with ties or without."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    pixels = rng.normal(size=(images, 1, SIDE, SIDE))
    model = linear_model(torch.tensor(rng.normal(size=(SIDE, SIDE)), dtype=torch.float32))
    labels = torch.from_numpy(rng.integers(0, 2, images))
    shape = (images, SIDE, SIDE)
    values = rng.integers(-3, 4, shape) if ties else rng.normal(size=shape)
    maps = torch.from_numpy(values.astype(np.float32))
    batch = batch_of(torch.tensor(pixels, dtype=torch.float32), labels, model)
    return model, batch, maps


def test_hand_computed_areas():
    # Label 1 while the sum is positive. Pixels 3, -1, -1, 0 in a row; the map says 3 > 0 > -1.
    model = linear_model(torch.ones(1, 4))
    images = torch.tensor([[[[3.0, -1.0, -1.5, 0.0]]]])
    batch = batch_of(images, torch.tensor([1]), model)
    maps = torch.tensor([[[3.0, -1.0, -1.5, 0.0]]])
    quarters = {"at": (0, 1, 2, 3, 4), "of": 4}
    most = Ablation(most_relevant_first=True, higher_is_better=False, **quarters)
    least = Ablation(most_relevant_first=False, higher_is_better=True, **quarters)
    # Most first: sums .5, -2.5, -2.5, -1.5, 0; a sum of 0 ties and argmax takes class 0.
    rows = rows_of(most, model, batch, maps)
    assert rows["correct"].tolist() == [[True, False, False, False, False]]
    assert rows["logit"].tolist() == [[0.5, -2.5, -2.5, -1.5, 0.0]]
    assert most.reduce(rows).score == 0.125  # trapezoid: half of one of four steps
    # Least first: sums .5, 2, 3, 3, 0.
    rows = rows_of(least, model, batch, maps)
    assert rows["logit"].tolist() == [[0.5, 2.0, 3.0, 3.0, 0.0]]
    assert least.reduce(rows).score == 0.875
    assert least.reduce(rows).curve == ([0, 0.25, 0.5, 0.75, 1], [1, 1, 1, 1, 0])


@given(scenes())
def test_rows_equal_those_of_the_oracle(scene):
    model, batch, maps = scene
    for protocol in (morf(), lerf()):
        rows = rows_of(protocol, model, batch, maps)
        slow = reference.ablation(
            model,
            batch.images,
            batch.labels,
            maps,
            batch.seeds,
            protocol.at,
            protocol.of,
            most_relevant_first=protocol.most_relevant_first,
        )
        np.testing.assert_allclose(rows["logit"], slow["logit"], atol=1e-5)
        reduced = protocol.reduce(rows)
        heights = rows["correct"].mean(axis=0)
        assert reduced.score == pytest.approx(reference.area(heights, protocol.at))
        assert reduced.score == pytest.approx(reduced.per_image.mean())


@given(scenes(ties=False))
def test_morf_of_a_map_is_lerf_of_its_negation(scene):
    model, batch, maps = scene
    most = rows_of(morf(), model, batch, maps)
    least = rows_of(lerf(), model, batch, -maps)
    for name in most:
        assert np.array_equal(most[name], least[name])


@given(scenes(), st.lists(st.floats(-1e6, 1e6, width=32), min_size=7, max_size=7, unique=True))
def test_any_strictly_increasing_transform_changes_nothing(scene, values):
    model, batch, maps = scene
    table = torch.tensor(sorted(values))  # the maps hold the integers -3 .. 3
    transformed = table[maps.long() + 3]
    for protocol in (morf(), lerf()):
        plain = rows_of(protocol, model, batch, maps)
        bent = rows_of(protocol, model, batch, transformed)
        assert all(np.array_equal(plain[name], bent[name]) for name in plain)


@given(scenes(images=5), st.permutations(range(5)), st.integers(1, 4))
def test_rows_do_not_depend_on_batch_size_or_order(scene, order, size):
    model, batch, maps = scene
    whole = rows_of(morf(), model, batch, maps)
    for start in range(0, 5, size):
        part = order[start : start + size]
        small = batch_of(
            batch.images[part], batch.labels[part], model, tuple(batch.seeds[i] for i in part)
        )
        rows = rows_of(morf(), model, small, maps[part])
        assert np.array_equal(rows["correct"], whole["correct"][part])
        np.testing.assert_allclose(rows["logit"], whole["logit"][part], atol=1e-5)


@given(scenes())
def test_score_is_in_range(scene):
    model, batch, maps = scene
    for protocol in (morf(), lerf()):
        assert 0 <= protocol.reduce(rows_of(protocol, model, batch, maps)).score <= 1


def test_equal_areas_are_exactly_equal():
    # The same area from different steps: floats summed in another order would differ.
    early = np.array([[1, 1, 0, 0, 1]] * 7 + [[1, 0, 0, 0, 0]], dtype=bool)
    late = np.array([[1, 0, 0, 1, 1]] * 7 + [[1, 0, 0, 0, 0]], dtype=bool)
    quarters = replace(morf(), at=(0, 1, 2, 3, 4), of=4)
    assert quarters.reduce({"correct": early}).score == quarters.reduce({"correct": late}).score


def test_the_ends_are_not_observed_again():
    model, calls = linear_model(torch.ones(SIDE, SIDE)), []
    batch = batch_of(torch.randn(2, 1, SIDE, SIDE), torch.tensor([0, 1]), model)
    shared = morf().shared.observe(model, batch)
    model.register_forward_hook(lambda *_: calls.append(1))
    morf().observe(model, batch, torch.randn(2, SIDE, SIDE), shared)
    assert len(calls) == len(morf().at) - 2


def test_an_order_that_does_not_end_empty_shares_nothing():
    assert protocols.get("road_morf").make().shared is None
    assert protocols.get("ids").make().shared is None


def test_the_area_over_uneven_steps_by_hand():
    # Heights 1, 1, 0 at 0, .1 and .5: (.1 * 1 + .4 * .5) / .5.
    road = Ablation(most_relevant_first=True, higher_is_better=False, at=(0, 1, 5))
    reduced = road.reduce({"correct": np.array([[1, 1, 0]])})
    assert reduced.score == pytest.approx(0.6)
    assert reduced.curve == ([0, 0.1, 0.5], [1, 1, 0])


def test_the_plain_mean_weighs_all_steps_alike():
    mean = Ablation(
        most_relevant_first=False, higher_is_better=True, measure="probability", area="mean"
    )
    heights = np.linspace(0, 1, 11) ** 2
    reduced = mean.reduce({"probability": np.stack([heights, heights / 2])})
    assert reduced.score == pytest.approx(0.75 * heights.mean())
    assert reduced.per_image == pytest.approx([heights.mean(), heights.mean() / 2])


def test_deletion_is_read_off_the_rows_of_morf():
    deletion = protocols.get("deletion").make()
    assert deletion.observation == morf().observation
    assert type(deletion) is type(morf())
    assert (deletion.measure, deletion.higher_is_better) == ("probability", False)


def test_insertion_by_inserting():
    """Onto the blurred image, pixel by pixel, the most relevant first."""
    torch.manual_seed(0)
    model = linear_model(torch.randn(SIDE, SIDE))
    images, labels = torch.randn(2, 1, SIDE, SIDE), torch.tensor([0, 1])
    maps = torch.randn(2, SIDE, SIDE)
    insertion = protocols.get("insertion").make()
    batch = batch_of(images, labels, model)
    reduced = insertion.reduce(rows_of(insertion, model, batch, maps))
    canvas = removal.get("blur")(images, torch.zeros(2, SIDE, SIDE))
    heights = []
    for tenth in range(11):
        # As many as are not removed: halves round up there, so down here.
        count = SIDE * SIDE - pixel_counts(SIDE * SIDE, (10 - tenth,), 10)[0]
        for image, image_on, values in zip(images, canvas, maps, strict=True):
            for pixel in values.flatten().argsort(descending=True)[:count].tolist():
                y, x = divmod(pixel, SIDE)
                image_on[:, y, x] = image[:, y, x]
        heights.append(responses(model, canvas, labels)["probability"].mean())
    assert reduced.score == pytest.approx(reference.area(heights, range(11)), abs=1e-6)
    assert reduced.curve[1] == pytest.approx(heights[::-1], abs=1e-6)


@pytest.mark.parametrize(
    ("name", "most_relevant_first", "higher_is_better", "how", "measure"),
    [
        ("morf", True, False, "mean", "correct"),
        ("lerf", False, True, "mean", "correct"),
        ("road_morf", True, False, "noisy_linear", "correct"),
        ("road_lerf", False, True, "noisy_linear", "correct"),
        ("ids", False, True, "mean", "probability"),
        ("deletion", True, False, "mean", "probability"),
        ("insertion", False, True, "blur", "probability"),
        ("morf:blur", True, False, "blur", "correct"),
        ("lerf:uniform", False, True, "uniform", "correct"),
    ],
)
def test_the_family(name, most_relevant_first, higher_is_better, how, measure):
    made = protocols.get(name).make()
    assert made.most_relevant_first is most_relevant_first
    assert made.higher_is_better is higher_is_better
    assert (made.removal, made.measure) == (how, measure)


def test_road_has_the_published_fractions_after_the_intact_image():
    made = protocols.get("road_morf").make()
    assert [k / made.of for k in made.at] == [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7, 0.9]
    assert made.at == protocols.get("road_lerf").make().at


def test_logits_have_no_bounds():
    assert morf().bounds == lerf().bounds == (0, 1)
    logits = Ablation(most_relevant_first=True, higher_is_better=False, measure="logit")
    assert logits.bounds == (-np.inf, np.inf)


def test_the_same_steps_of_another_whole_are_other_rows():
    names = {Ablation(True, False, at=(0, 1, 2), of=of).observation for of in (4, 8)}
    assert len(names) == 2


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("order", ["asc", "desc"])
def test_scores_of_fixed_maps_are_the_published_ones(name, order):
    network, images, targets, maps, published = single_deletion_vectors()
    protocol = replace(ids(), most_relevant_first=order == "desc")
    reduced = protocol.reduce(
        rows_of(protocol, network, batch_of(images, targets, network), maps[name])
    )
    np.testing.assert_allclose(reduced.per_image, published[f"ids_fixed_{order}_{name}"], atol=1e-6)
    assert len(reduced.curve[0]) == 32
