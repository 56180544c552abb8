"""Does a ranking of methods survive another removal? `morf`, `lerf` and `srg` under each of them.

python benchmarks/removals.py [--images 50] [--pairs digits-resnet,shapes-resnet] prints a table as
Markdown: the mean of Spearman's correlations between the rankings by two removals, and the least.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from rankings import looking, settings
from scipy.stats import spearmanr

from attrcheck.contracts import Case, Protocol
from attrcheck.engine.lab import Lab
from attrcheck.protocols import protocol as protocols
from attrcheck.protocols.symmetric import SymmetricGain
from attrcheck.removal import removal as removals

PAIRS = "digits-resnet,digits-vit,shapes-resnet,shapes-vgg"
KEPT: Mapping[str, str] = {"morf": "morf_", "lerf": "lerf_"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--pairs", default=PAIRS)
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        chosen = settings(given.store or Path(folder), given.images)
        lab = Lab.of(replace(chosen, methods=tuple(looking(chosen.methods))))
        lab.store.open()
        torch.set_num_threads(1)
        print("| pair | protocol | mean | least | between |\n|---|---|---|---|---|")
        for pair in given.pairs.split(","):
            for line in lines(lab, pair):
                print(line, flush=True)


def lines(lab: Lab, pair: str) -> list[str]:
    """The rows of the table for one dataset x model."""
    scores: dict[str, dict[str, np.ndarray]] = {}
    for removal in removals:
        case = Case.of(f"{pair}-srg")
        evaluation = replace(lab.evaluation(case), instead=SymmetricGain(removal))
        rows = evaluation.rows()
        for name, (protocol, prefix) in scored(removal).items():
            parts = (
                {
                    key.removeprefix(prefix): row
                    for key, row in one.items()
                    if key.startswith(prefix)
                }
                for one in rows.values()
            )
            scores.setdefault(name, {})[removal] = np.array(
                [protocol.reduce(part).score for part in parts]
            )
    table = []
    for name, by_removal in scores.items():
        pairs = {
            f"{one}, {other}": float(spearmanr(by_removal[one], by_removal[other]).statistic)
            for one, other in itertools.combinations(by_removal, 2)
        }
        worst = min(pairs, key=lambda both: pairs[both])
        mean = np.mean(list(pairs.values()))
        table.append(f"| {pair} | {name} | {mean:.2f} | {pairs[worst]:.2f} | {worst} |")
    return table


def scored(removal: str) -> dict[str, tuple[Protocol, str]]:
    """What is reduced from the rows of `srg`, and the prefix of its rows."""
    gain = SymmetricGain(removal)
    plain = {name: protocols.get(f"{name}:{removal}").make() for name in KEPT}
    return {
        **{name: (protocol, KEPT[name]) for name, protocol in plain.items()},
        **{f"{name}, probability": (part, KEPT[name]) for name, part in gain.parts.items()},
        "srg": (gain, ""),
    }


if __name__ == "__main__":
    main()
