"""The salience-guided faithfulness coefficient: votes of groups, by hand and the plain way."""

import numpy as np
import pytest

from attrcheck.laws.scenes import Scene
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.saco import Saco


def rows_of(salience, drops):
    return {
        "salience": np.array([salience]),
        "probability": np.array([[0.9, *(0.9 - drop for drop in drops)]]),
    }


@pytest.mark.parametrize(
    ("salience", "drops", "score"),
    [
        ([3.0, 2.0, 1.0], [0.5, 0.3, 0.1], 1.0),
        ([3.0, 2.0, 1.0], [0.1, 0.3, 0.5], -1.0),
        ([3.0, 2.0, 1.0], [0.3, 0.3, 0.5], -0.5),  # for: 1 (a tie); against: 2 and 1
        ([6.0, 2.0, 1.0], [0.5, 0.1, 0.3], 0.8),  # for: 4 and 5; against: 1
    ],
)
def test_votes_by_hand(salience, drops, score):
    assert Saco(groups=3).reduce(rows_of(salience, drops)).score == pytest.approx(score)


def test_groups_that_are_all_alike_have_no_say():
    reduced = Saco(groups=3).reduce(rows_of([0.1, 0.1 + 1e-16, 0.1], [0.1, 0.2, 0.3]))
    assert np.isnan(reduced.score)
    assert reduced.undefined == 1


def slow_saco(salience, drops):
    """The algorithm as it is published."""
    votes = weights = 0.0
    for i in range(len(drops) - 1):
        for j in range(i + 1, len(drops)):
            weight = salience[i] - salience[j]
            if drops[i] < drops[j]:
                weight = -weight
            votes += weight
            weights += abs(weight)
    return votes / weights


@pytest.mark.parametrize("seed", range(3))
def test_it_agrees_with_the_published_algorithm(seed):
    scene = Scene(seed=seed, count=2, maps="noise")
    protocol = Saco(groups=8)  # of eight pixels each
    rows = scene.observe(protocol)
    scores = protocol.reduce(rows).per_image
    for at, chosen in enumerate(scene.chosen):
        order = chosen.flatten().argsort(descending=True).view(8, 8)
        image, label = scene.images[at].flatten(1), scene.labels[at]
        salience, drops = [], []
        for group in order:
            without = image.clone()
            without[:, group] = 0
            both = [scene.model(x.view(1, 3, 8, 8)).softmax(1)[0, label] for x in (image, without)]
            drops.append(float(both[0] - both[1]))
            salience.append(float(chosen.flatten()[group].double().sum()))
        assert scores[at] == pytest.approx(slow_saco(salience, drops))


def test_one_pass_for_each_group(tiny):
    assert tiny.run("tiny-linear-saco").outcomes["slope"].passes["observation"] == [10.0, 0.0]
    assert protocols.get("saco").make() == Saco()
