"""No pass twice: what is shared is observed once, and records say what they cost."""

import pytest
import torch

import attrcheck
from attrcheck.contracts import Case
from attrcheck.engine import wire
from attrcheck.protocols import order
from attrcheck.protocols.single_deletion import SingleDeletion
from attrcheck.protocols.updating import STEPS

IMAGES, CELLS = 8, 16


@pytest.fixture
def world(tiny):
    """The tiny world with images of 8x8, which grids can cut."""
    pixels = torch.rand(IMAGES, 2, 8, 8, generator=torch.Generator().manual_seed(3))
    attrcheck.dataset("tiny8")(lambda: tiny.dataset("tiny8", images=pixels))
    pair = tiny.loader.pair("tiny8", "linear")
    assert pair.network  # is traced now, which takes a few passes
    assert pair.predictor
    return tiny


@pytest.fixture
def ranked(monkeypatch):
    """How many maps were ranked, call by call."""
    sizes, rank = [], order._rank
    monkeypatch.setattr(
        order, "_rank", lambda maps, seeds: sizes.append(len(maps)) or rank(maps, seeds)
    )
    order.RANKS.clear()
    yield sizes
    order.RANKS.clear()


def blind(shift):
    """A method that makes no pass."""
    return lambda model, images, targets: images[:, 0].roll(shift, 2)


def test_single_deletion_of_forty_methods_costs_one_pass_per_cell_and_one_intact(world, passes):
    for shift in range(40):
        world.add(f"blind{shift}", blind(shift))
    result = world.run("tiny8-linear-sds", methods=world.methods[-40:])
    assert len(result.outcomes) == 40
    assert all(outcome.status == "ok" for outcome in result.outcomes.values())
    # The first two are a look whether the model is one.
    assert passes == [2, *[IMAGES] * (CELLS + 1)]
    predictor = world.loader.pair("tiny8", "linear").predictor
    assert predictor.passes == 2 + IMAGES * (CELLS + 1)


def test_forty_methods_cost_what_one_costs(world, passes):
    world.add("blind", blind(1))
    world.run("tiny8-linear-sds", methods=("blind",))
    alone = sum(passes)
    passes.clear()
    for shift in range(2, 41):
        world.add(f"blind{shift}", blind(shift))
    world.run("tiny8-linear-sds", methods=world.methods[2:])
    assert alone == 2 + IMAGES * (CELLS + 1)
    assert passes == []


def test_protocols_share_the_intact_images_and_the_empty_ones(world, passes):
    world.add("blind", blind(1))
    costs = {}
    for protocol in ("morf", "lerf", "sds", "sds_2", "ids", "insertion", "completeness"):
        passes.clear()
        world.run(f"tiny8-linear-{protocol}", methods=("blind",))
        costs[protocol] = (len(passes), set(passes) - {2})
    assert {protocol: steps for protocol, (steps, _) in costs.items()} == {
        "morf": 1 + 1 + 1 + 9,  # a look at the model, intact, empty, and what lies between
        "lerf": 9,
        "sds": CELLS,
        "sds_2": 4,
        "ids": 31,
        "insertion": 1 + 9,  # another emptiness: the blurred image
        "completeness": 9,
    }
    assert all(sizes == {IMAGES} for _, sizes in costs.values())


def test_deletion_after_morf_makes_no_pass(world, passes, ranked):
    first = world.run("tiny8-linear-morf")
    passes.clear()
    ranked.clear()
    second = world.run("tiny8-linear-deletion")
    assert passes == ranked == []
    for name, outcome in second.outcomes.items():
        assert outcome.score != first.outcomes[name].score
        assert outcome.passes == first.outcomes[name].passes


def test_both_outputs_of_single_deletion_are_in_the_same_rows(world, passes):
    attrcheck.protocol("sds_softmax")(lambda: SingleDeletion(measure="probability"))
    world.run("tiny8-linear-sds")
    passes.clear()
    result = world.run("tiny8-linear-sds_softmax")
    assert passes == []
    assert all(outcome.status == "ok" for outcome in result.outcomes.values())


def test_morf_and_lerf_rank_the_pixels_once(world, ranked):
    world.run("tiny8-linear-morf")
    assert ranked == [IMAGES, IMAGES]  # once per method
    world.run("tiny8-linear-lerf")
    world.run("tiny8-linear-ids")
    world.run("tiny8-linear-insertion")
    assert ranked == [IMAGES, IMAGES]


def test_records_say_what_they_cost(world):
    """Forward and backward passes per image: stated for the maps, counted for the observation."""
    world.add("steep", blind(1), passes=(50, 25))
    expected = {"morf": 9, "lerf": 9, "sds": 0, "ids": 31, "completeness": 9, "deletion": 9}
    for protocol, looks in expected.items():
        result = world.run(f"tiny8-linear-{protocol}")
        assert result.outcomes["steep"].passes == {
            "attribution": [50, 25],
            "observation": [looks, 0],
        }
        assert result.outcomes["brightness"].passes["attribution"] == [1, 1]


@pytest.mark.parametrize("protocol", ["completeness", "morf", "sds"])
def test_records_cost_the_same_whoever_observes_first(world, protocol):
    """A check may observe before the case does: what methods share is still no method's cost."""
    case = Case.of(f"tiny8-linear-{protocol}")
    world.lab().evaluation(case).rows()
    outcomes = world.run(case.id).outcomes
    looks = {"completeness": 9, "morf": 9, "sds": 0}[protocol]
    assert [outcomes[name].passes["observation"] for name in world.methods] == [[looks, 0]] * 2


def test_new_maps_are_part_of_what_an_updated_observation_costs(world):
    world.add("steep", blind(1), passes=(50, 25))
    outcome = world.run("tiny8-linear-ids_updated").outcomes["steep"]
    steps = STEPS["default"]
    # Every step but the intact one is looked at; all but that and the first want a new map.
    assert outcome.passes["observation"] == [steps - 1 + 50 * (steps - 2), 25 * (steps - 2)]


def test_costs_are_the_same_when_they_come_from_the_store(world):
    first = world.run("tiny8-linear-ids")
    again = world.run("tiny8-linear-ids")
    assert wire.plain(again.outcomes) == wire.plain(first.outcomes)


def test_soundness_on_few_images_warns(world):
    with pytest.warns(UserWarning, match="soundness wants at least 100 images and has 8"):
        world.run("tiny8-linear-soundness")
