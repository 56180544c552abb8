"""Laws of methods catch their culprits on random networks, and built-in claims hold there."""

import pytest
import torch

import attrcheck
from attrcheck.checks.axioms import AXIOMS
from attrcheck.contracts import Method, Settings
from attrcheck.engine.lab import Lab
from attrcheck.engine.laws import Bound, bound, run_law
from attrcheck.laws.methods import CLAIMED
from attrcheck.laws.networks import KINDS, Network
from attrcheck.laws.trying import Effort
from attrcheck.methods import method as methods


@pytest.fixture
def lab(tmp_path):
    return Lab.of(
        Settings(
            profile="smoke",
            images=8,
            seed=0,
            methods=(),
            store=tmp_path,
            fresh=False,
            run="",
            device="cpu",
            threads=1,
            memory=None,
        )
    )


def tried(lab, name, law, examples=5):
    return run_law(Bound("method", name, law), lab, Effort(examples, seed=0))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 2])
def test_random_networks_are_alive(kind, depth):
    network, data = Network(kind, depth, seed=1, count=3).build(), Network(count=3, seed=1).data()
    images = data.normalise(data.images)
    logits = network(images)
    assert logits.shape == (3, 3)
    assert (logits[0] - logits[1]).abs().max() > 1e-3
    assert torch.equal(logits, Network(kind, depth, seed=1).build()(images))


@pytest.mark.parametrize("name", ["input_x_gradient", "integrated_gradients", "lrp", "chefer"])
def test_built_in_methods_obey_the_law(lab, name):
    laws = [law.law for law in bound([], [name], "smoke") if law.kind == "method"]
    assert len(laws) >= 4
    for law in laws:
        assert tried(lab, name, law).status == "held", law


def test_a_method_that_no_random_network_suits_is_not_tried(lab, registries):
    picky = attrcheck.method("picky", not_applicable=lambda model: "not my kind of network")
    picky(lambda model, images, targets: images)
    result = tried(lab, "picky", "every_image_has_a_map")
    assert (result.status, result.examples) == ("not_applicable", 0)
    assert result.reason == "not my kind of network"


def test_every_claim_of_every_method_is_tried_on_random_networks():
    assert set(CLAIMED) == set(AXIOMS)
    for name in methods:
        laws = {one.law for one in bound([], [name], "smoke") if one.kind == "method"}
        assert {f"it_keeps_{axiom}" for axiom in methods.get(name).axioms} <= laws


@pytest.mark.parametrize(
    ("name", "law", "kind"),
    [
        ("bcos_weights", "it_keeps_conservation", "bcos"),
        ("bagnet_evidence", "it_keeps_conservation", "patches"),
        ("deepshap", "it_keeps_completeness_in_mean", "plain"),
    ],
)
def test_claims_of_networks_of_one_kind_and_in_the_mean_hold(lab, name, law, kind):
    result = tried(lab, name, law)
    assert (result.status, result.examples) == ("held", 5)
    network, data = Network(kind, 2, seed=1, count=3).build(), Network(count=3, seed=1).data()
    logits = network(data.normalise(data.images))
    assert logits.shape == (3, 3)
    assert logits.std(0).min() > 1e-4


def test_costly_methods_are_tried_less_often(lab, registries):
    attrcheck.method("slow", passes=(400, 0))(lambda model, images, targets: images)
    assert tried(lab, "slow", "every_image_has_a_map", examples=50).examples == 5


def test_one_that_cannot_be_loaded_has_one_law_to_fail():
    assert [b.law for b in bound([], ["no_such"], "smoke") if b.kind == "method"] == [
        "every_image_has_a_map"
    ]


def signed(model, images, targets):
    return images.sum(1)


def flat(model, images, targets):
    return images.mean((2, 3))


COUNT = [0]


def counting(model, images, targets):
    COUNT[0] += 1
    return signed(model, images, targets) + COUNT[0]


def centred(model, images, targets):
    return signed(model, images - images.mean(0), targets) + len(images)


def trainer(model, images, targets):
    model.train()
    return signed(model, images, targets)


CLAIMS = dict.fromkeys(
    (
        *("completeness", "conservation_without_biases", "dummy_feature", "symmetry"),
        *("implementation_invariance", "scaling", "completeness_in_mean", "conservation"),
    ),
    1e-3,
)


def slanted(model, images, targets):
    """Sees the place of a pixel, how the network is written, and nothing of its scale."""
    return signed(model, images, targets) + torch.arange(12) + len(list(model.modules()))


@pytest.mark.parametrize(
    ("culprit", "law", "says"),
    [
        (flat, "every_image_has_a_map", "returned a tensor of shape"),
        (counting, "the_same_image_has_the_same_map", "two calls with the same seeds differ by"),
        (centred, "a_map_depends_on_no_other_image", "alone an image has another map"),
        (trainer, "attributing_leaves_the_network_alone", "changed the mode of the model"),
        (slanted, "it_keeps_completeness", "a map sums to"),
        (slanted, "it_keeps_completeness_in_mean", "a map sums to"),
        (slanted, "it_keeps_conservation", "a map sums to"),
        (slanted, "it_keeps_conservation_without_biases", "a map sums to"),
        (slanted, "it_keeps_dummy_feature", "unseen pixels have a value by"),
        (slanted, "it_keeps_symmetry", "does not tell apart differ by"),
        (slanted, "it_keeps_implementation_invariance", "have different maps by"),
        (slanted, "it_keeps_scaling", "not twice the map by"),
    ],
    ids=lambda value: value.__name__ if callable(value) else value.split()[0],
)
def test_each_law_catches_its_culprit(lab, registries, culprit, law, says):
    attrcheck.method("culprit", axioms=CLAIMS)(culprit)
    assert isinstance(methods.get("culprit"), Method)
    result = tried(lab, "culprit", law, examples=30)
    assert result.status == "broken"
    assert says in result.reason
    assert result.scene.startswith("Network(kind='plain', depth=1, seed=0, count=")
    assert result.seed == "0"
    assert tried(lab, "gradient", "the_same_image_has_the_same_map").status == "held"
