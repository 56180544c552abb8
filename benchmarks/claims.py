"""Which published claims about protocols hold here? Tables for docs/findings.md.

python benchmarks/claims.py --store FOLDER [--profile full] [--images 100] [--pairs objects-vit,...]
prints, as Markdown: how far rankings agree under another removal, order, grid or output of the
model, and on another model; what share of comparisons dummies win; whether a Gaussian in the centre
beats integrated gradients; and the board of `morf` and `lerf` beside the published one. What the
store has is not computed again: a run with `--attr-store FOLDER` fills it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
from rankings import (
    REMOVALS,
    Figures,
    Observed,
    Ranked,
    Scores,
    against,
    at_road,
    correlations,
    heading,
    looking,
    options,
    printed,
    row,
    study_of,
    told,
)

from attrcheck.consistency import band
from attrcheck.metarank import fuse
from attrcheck.protocols.ablation import ROAD_TENTHS
from attrcheck.protocols.responses import named
from attrcheck.protocols.symmetric import SymmetricGain
from attrcheck.ranks import spearman

ORDERS = ("morf", "lerf")
SINGLE = {
    "4 cells": "_2",
    "64 cells": "_8",
    "blurred": "_blur",
    "random": "_random",
}
"""What single deletion is compared with, and how its protocols are called."""
CENTRED, RIVAL = "gaussian_centre_4", "integrated_gradients"
SURE = 0.975
"""The share of resamples on which a method that is ahead beyond doubt is ahead."""
PUBLISHED = (
    "input_x_gradient",
    "integrated_gradients",
    "deeplift",
    "saliency",
    "lrp",
    "guided_backprop",
    "guided_gradcam",
    "deconvolution",
)
"""The board of the Meta-Rank paper, best first."""


def main() -> None:
    """Print the tables."""
    study = study_of(options(__doc__).parse_args())
    ranked = {
        pair: {name: one.scores() for name, one in [*observed.items(), *changed(observed)]}
        for pair, observed in study.items()
    }
    printed(
        {
            "Rankings by two removals, or orders": removal_table(ranked),
            "Rankings by single deletion, of 16 cells that become the mean": single_table(ranked),
            "Rankings by the logit and by the probability": output_table(ranked),
            "Rankings of the same protocol on two models": level_table(ranked),
            "The share of comparisons that a dummy wins": dummy_table(ranked),
            f"Models on which {CENTRED} is ahead of {RIVAL}": centre_table(ranked),
            "The published board, and that of morf and lerf": board_table(ranked),
        }
    )


def changed(observed: Mapping[str, Observed]) -> Iterator[tuple[str, Observed]]:
    """Protocols by other outputs, and both orders under both removals, from the same rows."""
    for name, one in observed.items():
        if hasattr(one.protocol, "measure"):
            yield f"{name}, by the logit", one.set(measure="logit")
            yield f"{name}, by the probability", one.set(measure="probability")
    for removal, names in REMOVALS.items():
        if not {*names} <= observed.keys():
            continue
        both = {
            order: at_road(observed[name]).set(measure="probability")
            for order, name in zip(ORDERS, names, strict=True)
        }
        for order, one in both.items():
            yield f"{order}, {removal}", one
        rows = {
            name: named({order: one.rows[name] for order, one in both.items()})
            for name in both["morf"].rows
        }
        yield (
            f"srg, {removal}",
            replace(both["morf"], protocol=SymmetricGain(at=ROAD_TENTHS), rows=rows),
        )


def removal_table(ranked: Ranked) -> Iterator[str]:
    """A row for each order under both removals, then for both orders under each removal."""
    yield heading("rankings", "correlation", "least")
    pairs = [[f"{order}, {removal}" for removal in REMOVALS] for order in (*ORDERS, "srg")]
    pairs += [[f"{order}, {removal}" for order in ORDERS] for removal in REMOVALS]
    for one, other in pairs:
        if agreed := against(ranked, one, other):
            yield row(f"{one}; {other}", told(agreed), least(agreed))


def least(agreed: Figures) -> str:
    """The smallest, and where that is."""
    worst = min(agreed, key=lambda pair: agreed[pair][0])
    return f"{agreed[worst][0]:.2f}, {worst.partition('-')[2]}"


def single_table(ranked: Ranked) -> Iterator[str]:
    """A row for each change: the network as it is, the fine-tuned one, and the difference."""
    yield heading("change", "`sds`", "least", "`idsds`", "least", "fine-tuning adds")
    for change, ending in SINGLE.items():
        both = [against(ranked, name, f"{name}{ending}") for name in ("sds", "idsds")]
        if all(both):
            plain, tuned = both
            added = {pair: tuned[pair] - plain[pair] for pair in tuned if pair in plain}
            cells = (cell for one in both for cell in (told(one), least(one)))
            yield row(change, *cells, told(added))


def output_table(ranked: Ranked) -> Iterator[str]:
    """A row for each protocol that can measure either."""
    yield heading("protocol", "correlation", "least")
    for name in protocols(ranked):
        if agreed := against(ranked, f"{name}, by the logit", f"{name}, by the probability"):
            yield row(f"`{name}`", told(agreed), least(agreed))


def protocols(ranked: Ranked) -> list[str]:
    """Those that rank, without changes of some."""
    every = dict.fromkeys(name for one in ranked.values() for name in one)
    return [name for name in every if ", " not in name]


def level_table(ranked: Ranked) -> Iterator[str]:
    """A row for each protocol: the mean correlation of two models, and how many are of each band.

    Then, for both orders on the same model.
    """
    yield heading("protocol", "mean", "strong", "moderate", "weak")
    for name in protocols(ranked):
        some = [one[name] for one in ranked.values() if name in one]
        yield from banded(f"`{name}`", list(combinations(some, 2)))
    both = [(one["morf"], one["lerf"]) for one in ranked.values() if {*ORDERS} <= one.keys()]
    yield from banded("`morf` and `lerf`, same model", both)


def banded(title: str, pairs: Iterable[tuple[Scores, Scores]]) -> Iterator[str]:
    """The row of these pairs of rankings, if any can be compared."""
    values = np.array([correlations(one, other)[0] for one, other in pairs])
    values = values[np.isfinite(values)]
    counts = Counter(map(band, values.round(6)))
    if len(values):
        bands = (counts[name] for name in ("strong", "moderate", "weak"))
        yield row(title, f"{values.mean():.2f}", *bands)


def dummy_table(ranked: Ranked) -> Iterator[str]:
    """A row for each protocol, and the model on which dummies win most."""
    yield heading("protocol", "share", "most")
    shares = {
        name: {pair: won(one[name]) for pair, one in ranked.items() if name in one}
        for name in protocols(ranked)
    }
    for name, figures in sorted(shares.items(), key=lambda one: told(one[1])):
        worst = max(figures, key=lambda pair: figures[pair][0])
        most = f"{figures[worst][0]:.2f}, {worst.partition('-')[2]}"
        yield row(f"`{name}`", told(figures), most)


def won(scores: Scores) -> np.ndarray:
    """The share that dummies win of their comparisons with other methods; a tie is half a win."""
    others = looking(scores)
    ahead = [
        (scores[dummy] > scores[other]) + 0.5 * (scores[dummy] == scores[other])
        for dummy in scores
        if dummy not in others
        for other in others
    ]
    return np.asarray(np.mean(ahead, axis=0))


def centre_table(ranked: Ranked) -> Iterator[str]:
    """A row for each protocol: on how many models the Gaussian is ahead beyond doubt, or behind."""
    yield heading("protocol", "ahead", "undecided", "behind")
    for name in protocols(ranked):
        both = [
            one[name] for one in ranked.values() if {CENTRED, RIVAL} <= one.get(name, {}).keys()
        ]
        ahead = np.array([np.mean(one[CENTRED][1:] > one[RIVAL][1:]) for one in both])
        behind = np.array([np.mean(one[CENTRED][1:] < one[RIVAL][1:]) for one in both])
        first, last = int((ahead >= SURE).sum()), int((behind >= SURE).sum())
        yield row(f"`{name}`", first, len(both) - first - last, last)


def board_table(ranked: Ranked) -> Iterator[str]:
    """The published order, with our Meta-Rank of the same eight methods and how far both agree."""
    cases = [one[order] for one in ranked.values() for order in ORDERS if order in one]
    scores = [[one[name][0] if name in one else np.nan for name in PUBLISHED] for one in cases]
    kappa = fuse(scores).kappa
    yield heading("published", "Meta-Rank here")
    for name, value in zip(PUBLISHED, kappa, strict=True):
        yield row(f"`{name}`", f"{value:.2f}")
    [agreement] = spearman([kappa], [-np.arange(len(PUBLISHED))])
    yield f"\nSpearman's correlation of the two: {agreement:.2f}, over {len(cases)} cases"


if __name__ == "__main__":
    main()
