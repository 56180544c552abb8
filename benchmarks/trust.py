"""Which protocols rank methods as ground-truth masks do? A table for docs/findings.md.

python benchmarks/trust.py [--images 100] [--pairs objects-resnet,objects-vit] [--store FOLDER]
prints, as Markdown, Spearman's correlation of the ranking by each protocol with the ranking by
masks, with intervals that hold 95% of those on resampled images, and whether a Gaussian in the
centre beats integrated gradients. What the store has is not computed again.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from attrcheck.consistency import LEAST_METHODS
from attrcheck.contracts import Settings
from attrcheck.engine.cases import selected_protocols, table
from attrcheck.engine.evaluation import run_case
from attrcheck.engine.lab import Lab
from attrcheck.engine.results import CaseResult
from attrcheck.engine.settings import affords
from attrcheck.methods import method as methods
from attrcheck.protocols import protocol as protocols

TRUTHS = ("relevance_mass", "relevance_rank")
"""Protocols that know where the object is, one by the values of maps and one by their order."""
MORE = ("srg", "grid_pointing", "difull", "dipart")
"""Protocols that do not run unasked, where they are registered."""
CENTRED, RIVAL = "gaussian_centre_4", "integrated_gradients"
LEVEL = (0.025, 0.975)

Scores = Mapping[str, NDArray[np.float64]]
"""Of each method: its score, then that on every resample; higher is better."""


def main() -> None:
    """Print the tables, those of single pairs first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--pairs", default="objects-resnet,objects-vit")
    parser.add_argument("--protocols", default="")
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab.of(settings(given.store or Path(folder), given.images))
        pairs = given.pairs.split(",")
        by_pair = {pair: scores_of(lab, pair, asked(given.protocols)) for pair in pairs}
    agreed = {pair: agreements(scores) for pair, scores in by_pair.items()}
    print(f"\nSpearman's correlation with the ranking by masks, {given.images} images\n")
    print("\n".join(agreement_table(agreed)))
    print(f"\nWhere {CENTRED} is ahead of {RIVAL}\n")
    print("\n".join(centre_table(by_pair)))


def settings(store: Path, images: int) -> Settings:
    """Those of a run of all methods that run unasked."""
    return Settings(
        profile="default",
        images=images,
        seed=0,
        methods=tuple(name for name in methods if affords(methods.get(name))),
        store=store,
        fresh=False,
        run="trust",
        device="cpu",
        threads=1,
        memory=None,
    )


def asked(wanted: str) -> str:
    """Globs of protocols: those asked for, else those that run unasked and some more."""
    names = [*selected_protocols("", "default"), *(name for name in MORE if name in protocols)]
    return f"{wanted},{','.join(TRUTHS)}" if wanted else ",".join(names)


def scores_of(lab: Lab, pair: str, wanted: str) -> dict[str, Scores]:
    """The scores of all methods by each protocol on one dataset x model."""
    dataset, model = pair.split("-")
    scores = {}
    for case in table(dataset, model, wanted, "default"):
        print(f"\r{case.id:60}", end="", flush=True)
        scores[case.protocol] = oriented(run_case(lab.evaluation(case), lambda text: None))
    print("\r", end="")
    return scores


def oriented(result: CaseResult) -> Scores:
    """The scores of the methods that have one."""
    sign = 1 if result.higher_is_better else -1
    return {
        name: sign * np.array([outcome.score, *outcome.replicates])
        for name, outcome in result.outcomes.items()
        if outcome.status == "ok"
    }


def agreements(scores: Mapping[str, Scores]) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Correlations of each protocol with each truth: as it is, then on every resample.

    Dummies do not take part: that they come last says little of those that look at the model.
    """
    agreed = {}
    for name, ours in scores.items():
        for truth in (truth for truth in TRUTHS if truth != name):
            both = [one for one in ours if one in scores[truth] and not methods.get(one).dummy]
            if len(both) < LEAST_METHODS:
                continue
            agreed[name, truth] = correlations(
                np.stack([ours[one] for one in both], 1),
                np.stack([scores[truth][one] for one in both], 1),
            )
    return agreed


def correlations(ours: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Spearman's correlation of each row of scores [resamples, methods] with that of the truth."""
    one, other = (rankdata(scores, axis=1) for scores in (ours, truth))
    one, other = (ranks - ranks.mean(1, keepdims=True) for ranks in (one, other))
    scale = np.sqrt((one**2).sum(1) * (other**2).sum(1))
    return np.asarray((one * other).sum(1) / scale)


def agreement_table(
    agreed: Mapping[str, Mapping[tuple[str, str], NDArray[np.float64]]],
) -> list[str]:
    """A row for each protocol: the mean over pairs, its interval, and the pair that agrees least.

    Protocols that agree most with the first truth come first.
    """
    truth = TRUTHS[0]
    common = set.intersection(*(set(one) for one in agreed.values()))
    names = {name for name, _ in common}
    means = {key: np.mean([one[key] for one in agreed.values()], axis=0) for key in common}
    lines = [
        f"| protocol | {' | '.join(TRUTHS)} | least, by {truth} |",
        "|---|" + "---|" * (len(TRUTHS) + 1),
    ]
    for name in sorted(names, key=lambda name: -means.get((name, truth), np.ones(1))[0]):
        cells = [told(means.get((name, against))) for against in TRUTHS]
        single = {pair: one[name, truth][0] for pair, one in agreed.items() if name != truth}
        worst = min(single, key=lambda pair: single[pair]) if single else ""
        least = f"{single[worst]:.2f}, {worst}" if worst else ""
        lines.append(f"| `{name}` | {' | '.join(cells)} | {least} |")
    return lines


def told(values: NDArray[np.float64] | None) -> str:
    """A correlation and its interval."""
    if values is None:
        return ""
    low, high = np.nanquantile(values[1:], LEVEL)
    return f"{values[0]:.2f} [{low:.2f}, {high:.2f}]"


def centre_table(by_pair: Mapping[str, Mapping[str, Scores]]) -> list[str]:
    """A row for each protocol: the share of resamples on which the Gaussian is ahead, per pair."""
    lines = [f"| protocol | {' | '.join(by_pair)} |", "|---|" + "---|" * len(by_pair)]
    for name in dict.fromkeys(name for scores in by_pair.values() for name in scores):
        cells = []
        for scores in by_pair.values():
            both = scores.get(name, {})
            there = CENTRED in both and RIVAL in both
            ahead = np.mean(both[CENTRED][1:] > both[RIVAL][1:]) if there else np.nan
            cells.append(f"{ahead:.0%}" if there else "")
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
