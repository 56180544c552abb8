"""Which protocols rank methods as ground truth does? Tables for docs/findings.md.

python benchmarks/trust.py [--images 100] [--pairs objects-resnet,objects-vit] [--store FOLDER]
prints, as Markdown: Spearman's correlation of the ranking by each protocol with the rankings by
ground truth; what changes if one thing about a protocol does; how far two removals and two orders
agree; and whether a Gaussian in the centre beats integrated gradients. Two intervals hold 95% of
the values on resampled images, and of those on resampled models and images. What the store has is
not computed again: a run with `--attr-store FOLDER` fills it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from attrcheck.consistency import LEAST_METHODS
from attrcheck.contracts import Case, Protocol, Rows, Settings
from attrcheck.engine.cases import selected_protocols, table
from attrcheck.engine.lab import Lab
from attrcheck.engine.resampling import replicates
from attrcheck.engine.settings import affords
from attrcheck.methods import method as methods
from attrcheck.protocols.ablation import ROAD_TENTHS, Ablation
from attrcheck.protocols.responses import named
from attrcheck.protocols.symmetric import SymmetricGain
from attrcheck.store.encoding import Entry

MODELS = ("bagnet", "bcos", "densenet", "efficientnet", "inception", "resnet", "vgg", "vit")
TRUTHS = ("relevance_mass", "relevance_rank", "difull")
"""Protocols that know what matters: by the values of maps, by their order, and by construction."""
MORE = ("srg", "difull", "grid_pointing", "saco")
"""Protocols that do not run unasked."""
SOME = ("densenet", "resnet", "vgg")
COSTLY: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("faithfulness_correlation", "infidelity", "sensitivity_n", "dipart"), SOME),
    "f_fidelity": ("resnet",),
    "idsds": (*SOME, "vit"),
}
"""Protocols that take long, some as they fine-tune a model, and the models they are tried on."""
REMOVALS = {"mean": ("morf", "lerf"), "imputed": ("road_morf", "road_lerf")}
"""The protocols of both orders, by what removed pixels become."""
CHANGES = (
    *(("road_morf", "morf, same images"), ("road_lerf", "lerf, same images")),
    *(("srg", "deletion"), ("srg", "lerf, probability")),
    *(("idsds", "sds, same images"), ("sds", "sds, same images")),
)
"""Pairs of protocols that differ in one thing: the one that is said to be better comes first."""
CENTRED, RIVAL = "gaussian_centre_4", "integrated_gradients"
LEVEL = (0.025, 0.975)
SURE = 0.975
"""The share of resamples on which a method that is ahead beyond doubt is ahead."""
DIGITS = 6
"""Scores that agree to so many digits are ties: `difull` gives many methods 1, but for rounding."""
SEED = 0

Floats = NDArray[np.float64]
Scores = Mapping[str, Floats]
"""Of each method: its score, then that on every resample; higher is better."""
Agreed = Mapping[str, Floats]
"""Of each dataset x model: a correlation, then that on every resample."""


@dataclass(frozen=True)
class Observed:
    """What a protocol observed of the methods on one dataset x model."""

    pair: str
    protocol: Protocol
    rows: Mapping[str, Rows]

    @property
    def images(self) -> int:
        """How many it looked at."""
        return next(len(array) for rows in self.rows.values() for array in rows.values())

    def cut(self, change: Callable[[NDArray[np.generic]], NDArray[np.generic]]) -> Observed:
        """The same with each array of rows changed."""
        rows = {
            name: {key: change(array) for key, array in some.items()}
            for name, some in self.rows.items()
        }
        return replace(self, rows=rows)

    def scores(self) -> Scores:
        """The scores of the methods that have one."""
        reductions = {name: self.protocol.reduce(rows) for name, rows in self.rows.items()}
        defined = {
            name: self.rows[name] for name, one in reductions.items() if np.isfinite(one.score)
        }
        resampled = replicates(self.protocol, defined, reductions, self.images, SEED, self.pair)
        sign = 1 if self.protocol.higher_is_better else -1
        return {
            name: sign * np.array([reductions[name].score, *resampled[name]]) for name in defined
        }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--pairs", default=",".join(f"objects-{model}" for model in MODELS))
    parser.add_argument("--protocols", default="", help="globs, in place of all")
    parser.add_argument("--store", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        lab = Lab.of(settings(given.store or Path(folder), given.images))
        lab.store.open()
        scores = {pair: scores_of(lab, pair, given.protocols) for pair in given.pairs.split(",")}
    agreed = {
        (name, truth): against(scores, name, truth)
        for name in dict.fromkeys(name for one in scores.values() for name in one)
        for truth in TRUTHS
        if name != truth
    }
    for title, lines in {
        "Spearman's correlation with ground truth": agreement_table(agreed),
        "The width of an interval, in the median of the protocols": widths(agreed),
        "By model, with relevance_mass": model_table(agreed, list(scores)),
        "What one change does to the correlation": change_table(agreed),
        "Spearman's correlation of rankings by two removals, or orders": removal_table(scores),
        f"Models on which {CENTRED} is ahead of {RIVAL}": centre_table(scores),
    }.items():
        print(f"\n{title}\n", *lines, sep="\n")


def settings(store: Path, images: int) -> Settings:
    """Those of a run of all methods that run unasked."""
    return Settings(
        profile="default",
        images=images,
        seed=SEED,
        methods=tuple(name for name in methods if affords(methods.get(name))),
        store=store,
        fresh=False,
        run="trust",
        device="cpu",
        threads=1,
        memory=None,
    )


def cases_of(pair: str, wanted: str) -> list[Case]:
    """Those of the protocols asked for, else of those that run unasked and some more."""
    dataset, model = pair.split("-")
    if wanted:
        return table(dataset, model, f"{wanted},{','.join(TRUTHS)}", "default")
    every = dict.fromkeys([*selected_protocols("", "default"), *MORE, *COSTLY])
    affordable = (name for name in every if model in COSTLY.get(name, MODELS))
    return table(dataset, model, ",".join(affordable), "default")


def scores_of(lab: Lab, pair: str, wanted: str) -> dict[str, Scores]:
    """The scores of all methods on one dataset x model, by each protocol and each change of one."""
    observed = {}
    for case in cases_of(pair, wanted):
        print(case.id, file=sys.stderr)
        evaluation = lab.evaluation(case)
        entries = evaluation.observe_all()
        rows = {name: one.arrays for name, one in entries.items() if isinstance(one, Entry)}
        if rows:
            observed[case.protocol] = Observed(pair, evaluation.settled(entries), rows)
    return {name: one.scores() for name, one in {**observed, **dict(changed(observed))}.items()}


def changed(observed: Mapping[str, Observed]) -> Iterator[tuple[str, Observed]]:
    """Protocols on the images and steps that another one has, made from the same rows."""
    if {"sds", "idsds"} <= observed.keys():
        few = observed["idsds"].images
        yield "sds, same images", observed["sds"].cut(lambda array: array[:few])
    orders = [name for names in REMOVALS.values() for name in names]
    if not {*orders} <= observed.keys():
        return
    few, steps = observed["road_morf"].images, list(ROAD_TENTHS)
    for removal, names in REMOVALS.items():
        rows = {}
        for order, name in zip(("morf", "lerf"), names, strict=True):
            one = observed[name]
            if removal == "mean":
                one = one.cut(lambda array: array[:few, steps])
            assert isinstance(one.protocol, Ablation)
            by_accuracy = replace(one.protocol, at=ROAD_TENTHS)
            rows[order] = replace(one, protocol=replace(by_accuracy, measure="probability"))
            yield f"{order}, {removal}", rows[order]
            if removal == "mean":
                yield f"{order}, same images", replace(one, protocol=by_accuracy)
        yield (
            f"srg, {removal}",
            replace(
                rows["morf"],
                protocol=SymmetricGain(at=ROAD_TENTHS),
                rows={
                    name: named({order: one.rows[name] for order, one in rows.items()})
                    for name in rows["morf"].rows
                },
            ),
        )
    lerf = observed["lerf"]
    assert isinstance(lerf.protocol, Ablation)
    yield "lerf, probability", replace(lerf, protocol=replace(lerf.protocol, measure="probability"))


def against(scores: Mapping[str, Mapping[str, Scores]], name: str, truth: str) -> Agreed:
    """The correlations of two protocols on each dataset x model where both rank methods."""
    agreed = {
        pair: correlations(one[name], one[truth])
        for pair, one in scores.items()
        if {name, truth} <= one.keys()
    }
    return {pair: values for pair, values in agreed.items() if np.isfinite(values[:1]).all()}


def correlations(ours: Scores, truth: Scores) -> Floats:
    """Spearman's correlation, as it is and on every resample; NaN where one does not rank.

    Dummies do not take part: that they come last says little of those that look at the model.
    """
    both = [one for one in ours if one in truth and not methods.get(one).dummy]
    if len(both) < LEAST_METHODS:
        return np.full(1, np.nan)
    stacked = (np.stack([some[one] for one in both], 1).round(DIGITS) for some in (ours, truth))
    one, other = (rankdata(values, axis=1) for values in stacked)
    one, other = (ranks - ranks.mean(1, keepdims=True) for ranks in (one, other))
    with np.errstate(invalid="ignore"):
        return np.asarray((one * other).sum(1) / np.sqrt((one**2).sum(1) * (other**2).sum(1)))


def mean_over_images(agreed: Agreed) -> Floats:
    """The mean over models, as it is and on every resample of images."""
    return np.asarray(np.nanmean(list(agreed.values()), axis=0))


def mean_over_models(agreed: Agreed) -> Floats:
    """The mean over models, on every resample of models and images."""
    values = np.stack(list(agreed.values()))[:, 1:]
    drawn = np.random.default_rng(SEED).integers(len(values), size=values.shape)
    return np.asarray(np.nanmean(np.take_along_axis(values, drawn, axis=0), axis=0))


def told(agreed: Agreed) -> str:
    """The mean over models, and both intervals."""
    if not agreed:
        return ""
    images = mean_over_images(agreed)
    return f"{images[0]:.2f} {interval(images[1:])} {interval(mean_over_models(agreed))}"


def interval(values: Floats) -> str:
    """What holds 95% of them."""
    low, high = np.nanquantile(values, LEVEL)
    return f"[{low:.2f}, {high:.2f}]"


def widths(agreed: Mapping[tuple[str, str], Agreed]) -> Iterator[str]:
    """Which matter more, images or models: how wide the intervals of protocols are."""
    for truth in TRUTHS:
        some = [one for name in plain(agreed) if (one := agreed.get((name, truth)))]
        for what, of in (("images", mean_over_images), ("models and images", mean_over_models)):
            width = np.median([np.ptp(np.nanquantile(of(one), LEVEL)) for one in some])
            yield f"by {truth}, over {what}: {width:.2f}"


def plain(names: Iterable[tuple[str, str]]) -> list[str]:
    """The protocols among them, without changes of some."""
    return list(dict.fromkeys(name for name, _ in names if ", " not in name))


def agreement_table(agreed: Mapping[tuple[str, str], Agreed]) -> Iterator[str]:
    """A row for each protocol, those that agree most with the first truth first."""
    yield f"| protocol | models | {' | '.join(TRUTHS)} |"
    yield "|---|---|" + "---|" * len(TRUTHS)

    def place(name: str) -> float:
        one = agreed.get((name, TRUTHS[0]))
        return -float(mean_over_images(one)[0]) if one else -2.0

    for name in sorted(plain(agreed), key=place):
        columns = [agreed.get((name, truth), {}) for truth in TRUTHS]
        yield f"| `{name}` | {max(map(len, columns))} | {' | '.join(map(told, columns))} |"


def model_table(agreed: Mapping[tuple[str, str], Agreed], pairs: Sequence[str]) -> Iterator[str]:
    """A row for each protocol, a column for each model; then the mean of each model."""
    yield f"| protocol | {' | '.join(pair.partition('-')[2] for pair in pairs)} |"
    yield "|---|" + "---|" * len(pairs)
    rows = {name: agreed[name, TRUTHS[0]] for name in plain(agreed) if name != TRUTHS[0]}
    for name, one in rows.items():
        cells = (f"{one[pair][0]:.2f}" if pair in one else "" for pair in pairs)
        yield f"| `{name}` | {' | '.join(cells)} |"
    whole = [one for one in rows.values() if len(one) == len(pairs)]
    means = (f"{np.mean([one[pair][0] for one in whole]):.2f}" for pair in pairs)
    yield f"| mean | {' | '.join(means)} |"


def change_table(agreed: Mapping[tuple[str, str], Agreed]) -> Iterator[str]:
    """A row for each change and truth: by how much the correlation grows, and on which models."""
    yield "| change | ground truth | grows by | models on which it grows |"
    yield "|---|---|---|---|"
    for after, before in CHANGES:
        for truth in TRUTHS:
            new, old = (agreed.get((name, truth), {}) for name in (after, before))
            grown = {pair: new[pair] - old[pair] for pair in new if pair in old}
            if grown:
                up = sum(values[0] > 0 for values in grown.values())
                cells = (f"{before} -> `{after}`", truth, told(grown), f"{up} of {len(grown)}")
                yield f"| {' | '.join(cells)} |"


def removal_table(scores: Mapping[str, Mapping[str, Scores]]) -> Iterator[str]:
    """A row for each order under both removals, then for both orders under each removal."""
    yield "| rankings | correlation | least |\n|---|---|---|"
    orders = [[f"{order}, {removal}" for removal in REMOVALS] for order in ("morf", "lerf", "srg")]
    removals = [[f"{order}, {removal}" for order in ("morf", "lerf")] for removal in REMOVALS]
    for one, other in orders + removals:
        if agreed := against(scores, one, other):
            least = min(agreed, key=lambda pair: agreed[pair][0])
            yield f"| {one}; {other} | {told(agreed)} | {agreed[least][0]:.2f}, {least} |"


def centre_table(scores: Mapping[str, Mapping[str, Scores]]) -> Iterator[str]:
    """A row for each protocol: on how many models the Gaussian is ahead beyond doubt, or behind."""
    yield "| protocol | ahead | undecided | behind |\n|---|---|---|---|"
    for name in plain((name, "") for one in scores.values() for name in one):
        both = [
            one[name] for one in scores.values() if {CENTRED, RIVAL} <= one.get(name, {}).keys()
        ]
        ahead = np.array([np.mean(one[CENTRED][1:] > one[RIVAL][1:]) for one in both])
        behind = np.array([np.mean(one[CENTRED][1:] < one[RIVAL][1:]) for one in both])
        first, last = int((ahead >= SURE).sum()), int((behind >= SURE).sum())
        yield f"| `{name}` | {first} | {len(both) - first - last} | {last} |"


if __name__ == "__main__":
    main()
