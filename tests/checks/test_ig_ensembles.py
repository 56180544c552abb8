"""Maps of ensembles from one set of noisy copies; what holds, what does not, what is open."""

import pytest
import torch

from attrcheck.checks.ig_ensembles import ENSEMBLES, PLAIN, maps_of, verdict
from attrcheck.methods.integrated import integrated_gradients
from attrcheck.methods.noise import SOUNDNESS, noisy
from tests.worlds import load


def test_ensembles_are_those_of_the_methods_and_are_computed_once(lab_of, monkeypatch):
    pair, lab = load("digits", "resnet", 2, "cpu"), lab_of()
    maps = maps_of(lab, pair)
    assert list(maps) == [PLAIN, *ENSEMBLES]
    given = pair.network, pair.images, pair.labels
    assert torch.allclose(maps[PLAIN], integrated_gradients(*given), atol=1e-5)
    seeds = pair.seeds(slice(0, 2), 0, "ig_ensembles")
    for name, statistic in ENSEMBLES.items():
        direct = noisy(integrated_gradients, *given, seeds, SOUNDNESS, statistic)
        assert torch.allclose(maps[name], direct, atol=1e-5)
    monkeypatch.setattr("attrcheck.checks.ig_ensembles.noisy", None)
    assert torch.equal(maps_of(lab, pair)["vargrad"], maps["vargrad"])


HOLDS = {
    **{f"soundness_lead_{name}": [0.01, 0.1] for name in ENSEMBLES},
    **{f"completeness_lead_{name}": [-0.2, -0.1] for name in ENSEMBLES},
    "completeness_lead_smoothgrad": [0.01, 0.02],
    "completeness_range": 0.2,
    "road_morf_range": 0.05,
    "morf_range": 0.1,
}


@pytest.mark.parametrize(
    ("change", "passed", "reason"),
    [
        ({}, True, ""),
        (
            {"soundness_lead_vargrad": [-0.1, 0.1]},
            None,
            "soundness of vargrad less that of integrated_gradients is -0.100 to 0.100",
        ),
        (
            {"soundness_lead_vargrad": [-0.2, -0.1]},
            False,
            "soundness of vargrad less that of integrated_gradients is -0.200 to -0.100",
        ),
        (
            {"completeness_lead_vargrad": [0.1, 0.2]},
            False,
            "completeness of vargrad less that of integrated_gradients is 0.100 to 0.200",
        ),
        ({"morf_range": 0.11}, False, "morf tells them apart by 0.110"),
        (
            {"morf_range": 0.11, "soundness_lead_vargrad": [-0.1, 0.1]},
            False,
            "morf tells them apart by 0.110",
        ),
    ],
)
def test_what_is_published_holds_or_does_not_or_cannot_be_told(change, passed, reason):
    result = verdict(HOLDS | change)
    assert (result.passed, result.reason) == (passed, reason)
