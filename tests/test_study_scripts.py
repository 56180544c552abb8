"""The scripts behind docs/findings.md: what they make of rows, by hand, and that they run."""

import sys

import claims
import numpy as np
import pytest
import rankings
import trust
from numpy.testing import assert_allclose
from rankings import Observed

from attrcheck.protocols.ablation import ROAD_TENTHS, Ablation

LEAST_FIRST = Ablation(most_relevant_first=False, higher_is_better=True)
METHODS = ("gradient", "saliency", "lrp", "deeplift")


def scores(*values: float, names: tuple[str, ...] = METHODS) -> rankings.Scores:
    return {name: np.array([value, value]) for name, value in zip(names, values, strict=True)}


def observed(protocol: Ablation, **correct: list[int]) -> Observed:
    rows = {
        name: {"correct": np.array([steps] * 3), "probability": np.array([steps] * 3) / 2}
        for name, steps in correct.items()
    }
    return Observed("objects-vit", protocol, rows)


def test_rankings_are_correlated_without_dummies():
    ours = {**scores(4, 3, 2, 1), "random": np.array([9.0, 9.0])}
    theirs = {**scores(4, 3, 1, 2), "random": np.array([0.0, 0.0])}
    # One swap of neighbours: 1 - 6 * 2 / (4 * 15).
    assert_allclose(rankings.correlations(ours, theirs), 0.8)


def test_three_methods_are_too_few_to_correlate():
    few = scores(1, 2, 3, names=METHODS[:3])
    assert np.isnan(rankings.correlations(few, few)).all()
    assert rankings.against({"objects-vit": {"a": few, "b": few}}, "a", "b") == {}


def test_scores_that_differ_by_rounding_share_a_rank():
    rounded = scores(1, 1 - 1e-9, 1 + 1e-9, 0)
    assert_allclose(rankings.correlations(rounded, scores(1, 1, 1, 0)), 1)


def test_the_intervals_are_over_images_and_over_models():
    figures = {"a-x": np.array([0.1, 0.0, 0.2]), "a-y": np.array([0.5, 0.4, 0.6])}
    assert_allclose(rankings.mean_over_images(figures), [0.3, 0.2, 0.4])
    # Either model may be drawn twice: what images alone give is not all.
    assert {*rankings.mean_over_models(figures).round(6)} <= {0.0, 0.2, 0.4, 0.6}
    assert rankings.told(figures).startswith("0.30 [0.21, 0.40] [")
    assert rankings.told({}) == ""


def test_lower_scores_are_better_if_the_protocol_says_so():
    falling = observed(Ablation(True, False), gradient=[1] * 11, lrp=[1, *[0] * 10])
    ranked = falling.scores()
    assert ranked["gradient"][0] == -1
    assert ranked["lrp"][0] == pytest.approx(-0.05)
    assert (ranked["lrp"] > ranked["gradient"]).all()


def test_a_curve_is_cut_to_the_fractions_of_road():
    steps = [1, 1, 1, 1, 1, 1, 0, 1, 0, 1, 0]
    cut = rankings.at_road(observed(LEAST_FIRST, gradient=steps))
    [score, *_] = cut.scores()["gradient"]
    assert score == 1  # what falls at 6, 8 and 10 tenths is not looked at
    assert rankings.at_road(cut) == cut
    assert cut.protocol.at == ROAD_TENTHS
    assert cut.set(measure="probability").scores()["gradient"][0] == 0.5


def test_dummies_win_by_half_where_they_tie():
    ranked = {**scores(4, 3, 2, 1), "random": np.array([2.0, 0.0])}
    assert_allclose(claims.won(ranked), [1.5 / 4, 0])


def test_protocols_that_agree_most_come_first():
    ranked = {
        "objects-vit": {
            "relevance_mass": scores(4, 3, 2, 1),
            "good": scores(4, 3, 1, 2),
            "bad": scores(1, 2, 3, 4),
            "good, changed": scores(1, 1, 1, 1),
        }
    }
    agreed = {
        (name, "relevance_mass"): rankings.against(ranked, name, "relevance_mass")
        for name in ("bad", "good", "good, changed")
    }
    _, first, second = trust.agreement_table(agreed)
    assert first.startswith("| `good` | 1 | 0.80 [0.80, 0.80] [0.80, 0.80] |")
    assert second.startswith("| `bad` | 1 | -1.00")


def test_a_change_is_told_with_the_models_on_which_it_helps():
    agreed = {
        ("srg", "relevance_mass"): {"o-a": np.full(99, 0.5), "o-b": np.full(99, 0.1)},
        ("deletion", "relevance_mass"): {"o-a": np.full(99, 0.1), "o-b": np.full(99, 0.3)},
    }
    _, line = trust.change_table(agreed)
    assert line.startswith("| deletion -> `srg` | relevance_mass | 0.10 [0.10, 0.10] [-0.20, 0.40]")
    assert line.endswith("| 1 of 2 |")


def test_the_published_board_is_met_by_the_published_order():
    ranks = dict(zip(claims.PUBLISHED, np.arange(8.0, 0, -1)[:, None], strict=True))
    ranked = {"objects-vit": {"morf": ranks, "lerf": ranks}}
    *_, last = claims.board_table(ranked)
    assert last == "\nSpearman's correlation of the two: 1.00, over 2 cases"


def test_rankings_are_counted_by_band():
    strong, weak = scores(4, 3, 2, 1), scores(1, 2, 3, 4)
    ranked = {"o-a": {"sds": strong}, "o-b": {"sds": strong}, "o-c": {"sds": weak}}
    _, line = claims.level_table(ranked)
    assert line == "| `sds` | -0.33 | 1 | 0 | 2 |"


@pytest.mark.slow
@pytest.mark.parametrize("script", [trust, claims])
def test_a_script_prints_its_tables_for_pairs_of_choice(script, monkeypatch, capsys, tmp_path):
    protocols = "morf,lerf,road_*,deletion,srg,sds*,relevance_*"
    given = ("--pairs=shapes-resnet,shapes-vit", "--images=4", f"--protocols={protocols}")
    monkeypatch.setattr(sys, "argv", [script.__name__, *given, f"--store={tmp_path}"])
    script.main()
    printed = capsys.readouterr().out
    assert "`road_morf`" in printed
    assert "nan" not in printed
